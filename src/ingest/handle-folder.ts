import { QuarryError } from "../errors.ts";
import type { ItemParts, Job, Result } from "./handle.ts";
import { isFile } from "./handle-file.ts";
import type { NewItem } from "./items.ts";
import { describeProject } from "./project.ts";
import { PRIORITIES } from "./queue.ts";
import { realFolder, type ScanOptions, scan } from "./scan.ts";

/** Items are written this many at a time: memory does not grow with the folder. */
const ITEMS_PER_WRITE = 500;
/** Of what was left out, this many are named. */
const SKIPPED_NAMED_MAX = 20;

/** A folder becomes an item for each of its files; what is gone from it goes. */
export async function handleFolder(parts: ItemParts, job: Job<"folder">): Promise<Result> {
  const {
    folder_path: root,
    recursive,
    recursive_depth: depth,
    patterns,
    ignore_patterns: ignored,
  } = job.payload;
  if (job.op === "delete") return removeBelow(parts, job, root);
  return scanAll(parts, job, root, {
    depthMax: recursive ? (depth ?? Number.POSITIVE_INFINITY) : 0,
    patterns,
    ignored,
  });
}

/** A project is a folder that knows what it is. */
export async function handleProject(parts: ItemParts, job: Job<"project">): Promise<Result> {
  const { project_root: root } = job.payload;
  if (job.op === "delete") return removeBelow(parts, job, root);
  const project = await describeProject(root, job.payload);
  const metadata = { ...job.metadata, project_type: project.type };
  const found = await scanAll(parts, { ...job, metadata }, root, {});
  return { ...project, ...found };
}

/** Files that were found and wait in line would bring the folder back, so they go first. */
async function removeBelow(
  { documents, items }: ItemParts,
  { id, tenant, collection, seenOn }: Job,
  root: string,
): Promise<Result> {
  const folder = await realFolder(root);
  let cancelled = 0;
  for await (const open of items.cancelAt(folder, { before: id })) cancelled += open.length;
  const removed = await documents.removeFrom({ tenant, collection, seenOn }, { folder });
  // What came after this was asked for stands, though it was quicker.
  await items.repeatAfter(id, folder);
  return { removed, cancelled };
}

async function scanAll(
  parts: ItemParts,
  job: Job<"folder"> | Job<"project">,
  root: string,
  rules: Omit<ScanOptions, "except">,
): Promise<Result> {
  const priority = job.op === "scan" ? Math.min(job.priority, PRIORITIES.scan) : job.priority;
  const again = job.payload.retry === true ? { retry: true } : {};
  const child = (op: "ingest" | "delete", path: string): NewItem => ({
    item_type: "file",
    op,
    // By the time that it is worked on, the file may have come or gone: what is found then counts.
    payload: { file_path: path, seen_on: parts.machine, as_found: true, ...again },
    tenant_id: job.tenant,
    collection: job.collection,
    priority,
    metadata: job.metadata,
    parent_id: job.id,
  });
  let files = 0;
  let skipped = 0;
  const skippedSome: { path: string; why: string }[] = [];
  let batch: NewItem[] = [];
  const write = async () => {
    job.signal.throwIfAborted();
    await parts.items.enqueueMany(batch, job);
    batch = [];
  };
  for await (const found of scan([root], { ...rules, except: parts.except })) {
    if (found.kind === "refused") throw new QuarryError("not_found", `${found.path}: ${found.why}`);
    if (found.kind === "skipped") {
      skipped++;
      if (skippedSome.length < SKIPPED_NAMED_MAX) skippedSome.push({ path: found.path, why: found.why });
      continue;
    }
    files++;
    batch.push(child("ingest", found.path));
    if (batch.length >= ITEMS_PER_WRITE) await write();
  }
  let gone = 0;
  // What another machine has under this path is not to be seen from here.
  const here = { ...job, seenOn: parts.machine };
  for await (const rows of parts.documents.from(here, { folder: await realFolder(root) })) {
    for (const { source } of rows) {
      if (await isFile(source)) continue;
      gone++;
      batch.push(child("delete", source));
    }
    if (batch.length >= ITEMS_PER_WRITE) await write();
  }
  await write();
  return { files, skipped, skipped_some: skippedSome, gone };
}
