import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isQuarryError } from "../errors.ts";
import type { EnqueuedItem, Items, NewItem } from "./items.ts";
import { PRIORITIES } from "./queue.ts";
import { whyNotOpened } from "./scan.ts";

export interface IngestOptions {
  readonly tenant?: string;
  readonly collection?: string;
  /** 0 to 10; 9, for somebody who gave a command, unless said. */
  readonly priority?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What failed before is tried again, although the file is the same. */
  readonly isRetried?: boolean;
}

export interface Ingested {
  readonly items: readonly (EnqueuedItem & { readonly path: string })[];
  /** Paths that could not be taken, and why. */
  readonly refused: readonly { readonly path: string; readonly why: string }[];
}

/** Puts files and folders of this machine into line. One that cannot be taken does not keep the others out. */
export async function ingest(
  { items, machine }: { items: Items; machine: string | undefined },
  paths: readonly string[],
  options: IngestOptions = {},
): Promise<Ingested> {
  const taken: { path: string; item: NewItem }[] = [];
  const refused: { path: string; why: string }[] = [];
  for (const path of paths) {
    try {
      taken.push({ path, item: await itemFor(path, { ...options, machine }) });
    } catch (error) {
      if (isQuarryError(error)) throw error;
      refused.push({ path, why: whyNotOpened(error) });
    }
  }
  const enqueued = await items.enqueueMany(taken.map(({ item }) => item));
  return { items: taken.map(({ path }, position) => ({ path, ...enqueued[position]! })), refused };
}

async function itemFor(
  path: string,
  options: IngestOptions & { machine: string | undefined },
): Promise<NewItem> {
  const full = resolve(path);
  const isFolder = (await stat(full)).isDirectory();
  const more = { seen_on: options.machine, ...(options.isRetried && { retry: true }) };
  return {
    item_type: isFolder ? "folder" : "file",
    op: "ingest",
    payload: isFolder ? { folder_path: full, ...more } : { file_path: full, ...more },
    tenant_id: options.tenant,
    collection: options.collection,
    priority: options.priority ?? PRIORITIES.command,
    metadata: options.metadata,
  };
}
