import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { QuarryError } from "../errors.ts";
import { fetchToFile } from "./fetch.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import { takeIn } from "./handle-file.ts";
import type { NewItem } from "./items.ts";

/** Documentation of a library, from a path on this machine or, if allowed, from an address on the internet. */
export async function handleLibrary(parts: ItemParts, job: Job<"library">): Promise<Result> {
  const { library_name: name, library_version: version, source_url: url, source_path: path } = job.payload;
  const place = { tenant: job.tenant, collection: job.collection };
  const source = `library:${name}`;
  if (job.op === "delete") {
    const removed = await parts.documents.removeFrom(place, { source });
    return { removed: removed + (path ? await parts.documents.removeFrom(place, { folder: path }) : 0) };
  }
  const metadata = { library_name: name, library_version: version };
  const local = path ?? localPath(url);
  if (local !== undefined)
    return fromPath(parts, { ...job, metadata: { ...job.metadata, ...metadata } }, local);
  if (url === undefined)
    throw new QuarryError("invalid_input", "payload: a library needs source_path or source_url");
  const file = join(parts.temporaryFolder, `${job.id}.download`);
  const { filename, remove } = await fetchToFile(url, { ...parts.library, file, signal: job.signal });
  try {
    return await takeIn(parts, job, { path: file, source, filename, title: `${name} ${version}`, metadata });
  } finally {
    await remove();
  }
}

function localPath(url: string | undefined): string | undefined {
  return url?.startsWith("file:///") ? decodeURIComponent(new URL(url).pathname) : undefined;
}

/** A folder is scanned like any other; a file is the whole documentation. */
async function fromPath(parts: ItemParts, job: Job<"library">, path: string): Promise<Result> {
  const info = await stat(path).catch(() => {
    throw new QuarryError("not_found", `${path}: no such file or folder`);
  });
  if (info.isFile()) return takeIn(parts, job, { path, source: path, filename: basename(path) });
  const folder: NewItem = {
    item_type: "folder",
    op: "ingest",
    payload: { folder_path: path },
    tenant_id: job.tenant,
    collection: job.collection,
    priority: job.priority,
    metadata: job.metadata,
    parent_id: job.id,
  };
  const { queue_id: id } = await parts.items.enqueue(folder);
  return { folder_item: id };
}
