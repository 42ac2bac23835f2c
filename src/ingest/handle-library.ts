import { stat } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { QuarryError } from "../errors.ts";
import { isMountAway, orAway } from "../mounts.ts";
import { fetchToFile } from "./fetch.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import { takeIn } from "./handle-file.ts";
import type { NewItem } from "./items.ts";
import { temporaryName } from "./keys.ts";
import { cancelBelow, type LibraryDocument, libraryDocuments } from "./library-documents.ts";
import { isFileUrl } from "./payloads.ts";
import { PRIORITIES } from "./queue.ts";
import { realFolder, realPath } from "./scan.ts";

/**
 * Documentation of a library, from a path on this machine or, if allowed, from an address on the internet. Wherever it
 * came from, its documents carry the library's name: that is how a new version replaces them and a deletion finds them.
 */
export async function handleLibrary(parts: ItemParts, given: Job<"library">): Promise<Result> {
  const { library_name: name, library_version: version, source_url: url, source_path: path } = given.payload;
  if (given.op === "delete") return removeLibrary(parts, given);
  const job = { ...given, metadata: { ...given.metadata, library_name: name, library_version: version } };
  const local = path ?? localPath(url);
  if (local !== undefined) return fromPath(parts, job, local);
  if (url === undefined)
    throw new QuarryError("invalid_input", "payload: a library needs source_path or source_url");
  return fromInternet(parts, job, url);
}

function localPath(url: string | undefined): string | undefined {
  if (url === undefined || !isFileUrl(url)) return undefined;
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw new QuarryError("invalid_input", "source_url: this names no file here; give source_path", {
      cause,
    });
  }
}

async function fromInternet(parts: ItemParts, job: Job<"library">, url: string): Promise<Result> {
  const { library_name: name, library_version: version } = job.payload;
  const file = join(parts.temporaryFolder, temporaryName(job.id, ".download"));
  const source = `library:${name}`;
  const { filename, remove } = await fetchToFile(url, { ...parts.library, file, signal: job.signal });
  try {
    const taken = await takeIn(parts, job, { path: file, source, filename, title: `${name} ${version}` });
    return { ...taken, replaced: await removeOthers(parts, job, { source, seenOn: undefined }) };
  } finally {
    await remove();
  }
}

/** A folder is scanned like any other; a file is the whole documentation. */
async function fromPath(parts: ItemParts, job: Job<"library">, given: string): Promise<Result> {
  const info = await stat(given).catch((error) => {
    if (isMountAway(error)) throw orAway(error, given);
    throw new QuarryError("not_found", `${given}: no such file or folder`);
  });
  const path = await (info.isFile() ? realPath : realFolder)(given);
  if (info.isFile()) {
    const seenOn = parts.machine;
    const taken = await takeIn(parts, job, { path, source: path, seenOn, filename: basename(path) });
    return { ...taken, replaced: await removeOthers(parts, job, { source: path, seenOn }) };
  }
  const shared = {
    tenant_id: job.tenant,
    collection: job.collection,
    metadata: job.metadata,
    parent_id: job.id,
  };
  const folder: NewItem = {
    ...shared,
    item_type: "folder",
    op: "ingest",
    payload: { folder_path: path, seen_on: parts.machine },
    priority: job.priority,
  };
  const { queue_id: id } = await parts.items.enqueue(folder);
  // What came from elsewhere goes after what comes now.
  let replaced = 0;
  const start = path.endsWith(sep) ? path : path + sep;
  for await (const documents of libraryDocuments(parts.database, job, job.payload.library_name)) {
    const old = documents.filter(
      ({ source, seenOn }) => !source.startsWith(start) || !isHere(parts, { seenOn }),
    );
    replaced += old.length;
    await parts.items.enqueueMany(
      old.map(({ id }) => ({
        ...shared,
        item_type: "delete_document",
        op: "delete",
        payload: { document_id: id },
        priority: PRIORITIES.deferred,
      })),
    );
  }
  return { folder_item: id, replaced };
}

/** The new text can be searched by now. */
function removeOthers(
  parts: ItemParts,
  job: Job<"library">,
  kept: { source: string; seenOn: string | undefined },
): Promise<number> {
  return removeWhere(parts, job, ({ source, seenOn }) => source !== kept.source || seenOn !== kept.seenOn);
}

/** One of which nobody said where it was seen is what any machine finds under its path. */
function isHere({ machine }: ItemParts, { seenOn }: { seenOn: string | undefined }): boolean {
  return seenOn === undefined || seenOn === machine;
}

async function removeLibrary(parts: ItemParts, job: Job<"library">): Promise<Result> {
  const cancelled = await cancelBelow(parts.items, job.id);
  let removed = await removeWhere(parts, job, () => true);
  const path = job.payload.source_path ?? localPath(job.payload.source_url);
  // A scan of the same folder for another reason may have taken the library's name off them.
  if (path !== undefined)
    for (const where of [{ source: await realPath(path) }, { folder: await realFolder(path) }])
      removed += await parts.documents.removeFrom(job, where);
  return { removed, cancelled };
}

async function removeWhere(
  { database, documents }: ItemParts,
  job: Job<"library">,
  isMeant: (document: LibraryDocument) => boolean,
): Promise<number> {
  const { tenant, collection } = job;
  let removed = 0;
  for await (const found of libraryDocuments(database, job, job.payload.library_name)) {
    for (const { source, seenOn } of found.filter(isMeant)) {
      job.signal.throwIfAborted();
      removed += await documents.removeFrom({ tenant, collection, seenOn }, { source });
    }
  }
  return removed;
}
