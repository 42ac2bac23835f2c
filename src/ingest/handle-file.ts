import { lstat } from "node:fs/promises";
import { basename } from "node:path";
import type { Session } from "../database/database.ts";
import type { NewDocument } from "../documents/documents.ts";
import { QuarryError } from "../errors.ts";
import type { Ticket } from "../queue/outcome.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import { realPath } from "./scan.ts";

/** A file becomes a document, and the item is done when that can be searched. */
export async function handleFile(parts: ItemParts, job: Job<"file">): Promise<Result> {
  const { file_path: path } = job.payload;
  const source = await realPath(path);
  const isFound = job.payload.as_found === true;
  if (isFound ? await isFile(path) : job.op !== "delete")
    return takeIn(parts, job, { path, source, seenOn: parts.machine, filename: basename(path) });
  // Who looked for it can speak for this machine only; who deletes it without naming a machine means it everywhere.
  const seenOn = job.seenOn ?? (isFound ? parts.machine : undefined);
  return removeSource(parts, { ...job, seenOn }, source);
}

/** What cannot be looked at may be there. */
export async function isFile(path: string): Promise<boolean> {
  return lstat(path).then(
    (info) => info.isFile(),
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT" && error.code !== "ENOTDIR",
  );
}

export async function takeIn(
  parts: ItemParts,
  job: Pick<Job, "claim" | "tenant" | "collection" | "metadata" | "isRetried" | "payload" | "signal">,
  document: Pick<NewDocument, "path" | "source" | "seenOn" | "filename" | "title"> & {
    metadata?: Record<string, unknown>;
  },
): Promise<Result> {
  const { documents, searchable } = parts;
  const note = (session: Session, id: string) => noteDocument(parts, job.claim, { id, session });
  const { id, change } = await documents.add({
    ...document,
    tenant: job.tenant,
    collection: job.collection,
    metadata: { ...job.metadata, ...document.metadata },
    isRetried: job.isRetried || job.payload.retry === true,
    also: note,
  });
  if (!["added", "replaced"].includes(change)) await note(parts.database, id);
  const reached = await searchable.reached(id, job.signal);
  if (reached === "failed") {
    const { failures } = await documents.show(id);
    throw new QuarryError(
      "file_unreadable",
      failures[0]?.error ?? `document ${id} failed; quarry documents show ${id} says why`,
    );
  }
  return { document_id: id, change, state: reached };
}

/** An item that was cancelled while its file was being copied leaves no new document behind. */
async function noteDocument(
  { items }: ItemParts,
  claim: Ticket,
  { id, session }: { id: string; session: Session },
): Promise<void> {
  if (await items.noteDocument(claim, id, session)) return;
  throw new QuarryError("lease_lost", `item ${claim.key} was cancelled, or another worker has it now`);
}

export async function removeSource(
  { documents }: ItemParts,
  { tenant, collection, seenOn }: Pick<Job, "tenant" | "collection" | "seenOn">,
  source: string,
): Promise<Result> {
  return { removed: await documents.removeFrom({ tenant, collection, seenOn }, { source }) };
}
