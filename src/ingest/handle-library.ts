import { stat } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { QuarryError } from "../errors.ts";
import { fetchToFile } from "./fetch.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import { takeIn } from "./handle-file.ts";
import type { NewItem } from "./items.ts";
import { temporaryName } from "./keys.ts";
import { cancelBelow, libraryDocuments } from "./library-documents.ts";
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
  if (url === undefined || !/^file:/i.test(url)) return undefined;
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
    return { ...taken, replaced: await removeOthers(parts, job, source) };
  } finally {
    await remove();
  }
}

/** A folder is scanned like any other; a file is the whole documentation. */
async function fromPath(parts: ItemParts, job: Job<"library">, given: string): Promise<Result> {
  const info = await stat(given).catch(() => {
    throw new QuarryError("not_found", `${given}: no such file or folder`);
  });
  const path = await (info.isFile() ? realPath : realFolder)(given);
  if (info.isFile()) {
    const taken = await takeIn(parts, job, { path, source: path, filename: basename(path) });
    return { ...taken, replaced: await removeOthers(parts, job, path) };
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
    payload: { folder_path: path, seen_on: parts.machines.host },
    priority: job.priority,
  };
  const { queue_id: id } = await parts.items.enqueue(folder);
  // What came from elsewhere goes after what comes now.
  let replaced = 0;
  for await (const sources of libraryDocuments(parts.database, job, job.payload.library_name)) {
    const old = sources.filter((source) => !source.startsWith(path.endsWith(sep) ? path : path + sep));
    replaced += old.length;
    await parts.items.enqueueMany(
      old.map((source) => ({
        ...shared,
        item_type: "delete_document",
        op: "delete",
        payload: { document_id: source },
        priority: PRIORITIES.deferred,
      })),
    );
  }
  return { folder_item: id, replaced };
}

/** The new text can be searched by now. */
function removeOthers(parts: ItemParts, job: Job<"library">, kept: string): Promise<number> {
  return removeWhere(parts, job, (source) => source !== kept);
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
  isMeant: (source: string) => boolean,
): Promise<number> {
  let removed = 0;
  for await (const sources of libraryDocuments(database, job, job.payload.library_name)) {
    for (const source of sources.filter(isMeant)) {
      job.signal.throwIfAborted();
      removed += await documents.removeFrom(job, { source });
    }
  }
  return removed;
}
