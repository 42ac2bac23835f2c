import { basename } from "node:path";
import type { NewDocument } from "../documents/documents.ts";
import { QuarryError } from "../errors.ts";
import type { ItemParts, Job, Result } from "./handle.ts";

/** A file becomes a document, and the item is done when that can be searched. */
export async function handleFile(parts: ItemParts, job: Job<"file">): Promise<Result> {
  const { file_path: path } = job.payload;
  if (job.op === "delete") return removeSource(parts, job, path);
  return takeIn(parts, job, { path, source: path, filename: basename(path) });
}

export async function takeIn(
  { documents, items, searchable }: ItemParts,
  job: Pick<Job, "claim" | "tenant" | "collection" | "metadata" | "attempt" | "payload" | "signal">,
  document: Pick<NewDocument, "path" | "source" | "filename" | "title"> & {
    metadata?: Record<string, unknown>;
  },
): Promise<Result> {
  const { id, change } = await documents.add({
    ...document,
    tenant: job.tenant,
    collection: job.collection,
    metadata: { ...job.metadata, ...document.metadata },
    // What failed is tried again when the item is.
    isRetried: job.attempt > 1 || job.payload.retry === true,
  });
  await items.noteDocument(job.claim, id);
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

export async function removeSource(
  { documents }: ItemParts,
  { tenant, collection }: Pick<Job, "tenant" | "collection">,
  source: string,
): Promise<Result> {
  return { removed: await documents.removeFrom({ tenant, collection }, { source }) };
}
