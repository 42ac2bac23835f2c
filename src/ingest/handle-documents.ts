import { isAbsolute, normalize } from "node:path";
import { isUuid } from "../ids.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import type { ItemType } from "./queue.ts";
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

/** By its id, or by the path that it came from. Never another tenant's. */
export async function deleteDocument({ documents }: ItemParts, job: Job<"delete_document">): Promise<Result> {
  const { document_id: named } = job.payload;
  const { tenant, collection } = job;
  const byId = isUuid(named) ? await documents.removeFrom({ tenant }, { id: named.toLowerCase() }) : 0;
  if (byId > 0) return { removed: byId };
  const source = isAbsolute(named) ? await realPath(normalize(named)) : named;
  return { removed: await documents.removeFrom({ tenant, collection }, { source }) };
}

/** The documents keep their vectors under the new name. */
export async function rename(parts: ItemParts, job: Job<"rename">): Promise<Result> {
  const { is_folder: isFolder } = job.payload;
  // The old one is gone, or is another one by now: what it may be a link to does not matter.
  const from = await realPath(job.payload.old_path);
  const to = await (isFolder ? realFolder : realPath)(job.payload.new_path);
  const followed = await followItems(parts, job, { from, to });
  const { tenant, collection, seenOn } = job;
  return {
    moved: await parts.documents.move({ tenant, collection, seenOn }, { from, to, isFolder }),
    followed,
  };
}

/**
 * What was to be done with the file under its old name is to be done under the new one; also what has failed, for it may
 * not have found the file any more.
 */
async function followItems(
  { items }: ItemParts,
  job: Job<"rename">,
  { from, to }: { from: string; to: string },
): Promise<number> {
  let followed = 0;
  for await (const open of items.cancelAt(from, { before: job.id, isMoved: true, isFailedToo: true })) {
    const meant = open.filter(({ op }) => op !== "delete");
    await items.enqueueMany(
      meant.map(({ item_type, op, priority, metadata, payload, path }) => ({
        ...{ item_type, op, priority, metadata, parent_id: job.id },
        payload: { ...payload, [pathField(item_type)]: to + path.slice(from.length) },
        tenant_id: job.tenant,
        collection: job.collection,
      })),
      job,
    );
    followed += meant.length;
  }
  return followed;
}

function pathField(type: ItemType): "folder_path" | "file_path" {
  return type === "folder" ? "folder_path" : "file_path";
}
