import { isAbsolute, normalize } from "node:path";
import type { ItemParts, Job, Result } from "./handle.ts";
import { realFolder, realPath } from "./scan.ts";

/** Everything of a tenant: its documents and what waits in its name. */
export async function deleteTenant(
  { documents, items }: ItemParts,
  job: Job<"delete_tenant">,
): Promise<Result> {
  const { tenant_id_to_delete: tenant } = job.payload;
  const cancelled = await items.cancelAll({ tenant_id: tenant }, { except: job.id });
  return { removed: await documents.removeFrom({ tenant }, "all"), cancelled };
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** By its id, or by the path that it came from. Never another tenant's. */
export async function deleteDocument({ documents }: ItemParts, job: Job<"delete_document">): Promise<Result> {
  const { document_id: named } = job.payload;
  const { tenant, collection } = job;
  const byId = ID.test(named) ? await documents.removeFrom({ tenant }, { id: named.toLowerCase() }) : 0;
  if (byId > 0) return { removed: byId };
  const source = isAbsolute(named) ? await realPath(normalize(named)) : named;
  return { removed: await documents.removeFrom({ tenant, collection }, { source }) };
}

/** The documents keep their vectors under the new name. */
export async function rename({ documents }: ItemParts, job: Job<"rename">): Promise<Result> {
  const { is_folder: isFolder } = job.payload;
  const { tenant, collection } = job;
  const real = isFolder ? realFolder : realPath;
  // The old one is gone, or is another one by now: what it may be a link to does not matter.
  const from = await realPath(job.payload.old_path);
  const to = await real(job.payload.new_path);
  return { moved: await documents.move({ tenant, collection }, { from, to, isFolder }) };
}
