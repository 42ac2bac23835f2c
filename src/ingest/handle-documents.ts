import { checkedId, type Documents } from "../documents/documents.ts";
import { isQuarryError } from "../errors.ts";
import type { ItemParts, Job, Result } from "./handle.ts";

/** Everything of a tenant: its documents and what waits in its name. */
export async function deleteTenant(
  { documents, items }: ItemParts,
  job: Job<"delete_tenant">,
): Promise<Result> {
  const { tenant_id_to_delete: tenant } = job.payload;
  const cancelled = await items.cancelAll({ tenant_id: tenant }, { except: job.id });
  return { removed: await documents.removeFrom({ tenant }, "all"), cancelled };
}

/** By its id, or by the path that it came from. */
export async function deleteDocument({ documents }: ItemParts, job: Job<"delete_document">): Promise<Result> {
  const { document_id: named } = job.payload;
  const { tenant, collection } = job;
  if (!named.includes("/") && (await removeById(documents, named))) return { removed: 1 };
  return { removed: await documents.removeFrom({ tenant, collection }, { source: named }) };
}

async function removeById(documents: Documents, id: string): Promise<boolean> {
  try {
    await documents.delete(checkedId(id));
    return true;
  } catch (error) {
    // Gone already is what was wanted, and what is no id may be a source.
    if (isQuarryError(error, "not_found", "invalid_input")) return false;
    throw error;
  }
}

/** The documents keep their vectors under the new name. */
export async function rename({ documents }: ItemParts, job: Job<"rename">): Promise<Result> {
  const { old_path: from, new_path: to, is_folder: isFolder } = job.payload;
  const { tenant, collection } = job;
  return { moved: await documents.move({ tenant, collection }, { from, to, isFolder }) };
}
