import { createHash, randomBytes } from "node:crypto";
import { type Payload, seenOnOf } from "./payloads.ts";
import type { ItemType } from "./queue.ts";

/** What makes two items mean the same thing. */
const IDENTIFIERS: { readonly [Type in ItemType]: (payload: Payload<Type>) => string } = {
  // A note with a name of its own is the same note whatever it says.
  content: ({ content, source }) => source ?? content,
  file: ({ file_path: path }) => path,
  folder: ({ folder_path: path }) => path,
  project: ({ project_root: path }) => path,
  library: ({ library_name: name, library_version: version }) => `${name}:${version}`,
  delete_tenant: ({ tenant_id_to_delete: tenant }) => tenant,
  delete_document: ({ document_id: id }) => id,
  rename: ({ old_path: from, new_path: to }) => `${from}:${to}`,
};

const HASH_CHARS = 16;

/** `{item_type}:{collection}:{identifier_hash}`. Under one path two machines may have two files; a library is one, wherever it comes from. */
export function idempotencyKey<Type extends ItemType>(
  type: Type,
  collection: string,
  payload: Payload<Type>,
): string {
  const seenOn = type === "library" ? undefined : seenOnOf(type, payload);
  const identifier = IDENTIFIERS[type](payload);
  return `${type}:${collection}:${shortHash(seenOn === undefined ? identifier : `${seenOn}:${identifier}`)}`;
}

export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_CHARS);
}

/** A worker that has lost the item may still be at its own file. */
export function temporaryName(id: string, ending: string): string {
  return `${id}-${randomBytes(4).toString("hex")}${ending}`;
}
