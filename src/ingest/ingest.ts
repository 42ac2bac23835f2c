import { type Added, checkedName, type Documents, type NewDocument } from "../documents/documents.ts";
import { isQuarryError, messageOf, type QuarryError } from "../errors.ts";
import { scan } from "./scan.ts";

export interface IngestOptions extends Omit<NewDocument, "path" | "filename" | "source" | "title"> {
  /** Hears of every file as it is taken in or not. */
  readonly onFile?: (file: IngestedFile) => void;
  readonly signal?: AbortSignal;
}

export type IngestedFile =
  | ({ readonly path: string; readonly kind: "taken" } & Added)
  | { readonly path: string; readonly kind: "skipped"; readonly why: string }
  | { readonly path: string; readonly kind: "refused"; readonly why: string };

export interface Ingested {
  readonly files: readonly IngestedFile[];
  /** Ids of the documents that were taken in, unchanged ones included. */
  readonly ids: readonly string[];
}

/** Files are copied in this many at a time: the disk is busy, the memory is not. */
const AT_ONCE = 4;

/** Not the file's fault: the next ones would be refused as well. */
const OUTAGES = ["database_unavailable", "commit_unknown", "disk_full"] as const;

/** Takes in files and folders. One that cannot be taken does not keep the others out. */
export async function ingest(
  { documents, except }: { documents: Documents; except: readonly string[] },
  paths: readonly string[],
  options: IngestOptions = {},
): Promise<Ingested> {
  const { onFile, signal, ...common } = options;
  // Once, and not of each file.
  for (const what of ["tenant", "collection"] as const)
    if (common[what] !== undefined) checkedName(what, common[what]);
  let outage: QuarryError | undefined;
  const files: IngestedFile[] = [];
  const note = (file: IngestedFile) => {
    files.push(file);
    onFile?.(file);
  };
  const take = async (path: string) => {
    try {
      note({ path, kind: "taken", ...(await documents.add({ ...common, path })) });
    } catch (error) {
      if (isQuarryError(error, ...OUTAGES)) outage = error;
      else note({ path, kind: "refused", why: messageOf(error) });
    }
  };
  const running = new Set<Promise<void>>();
  for await (const found of scan(paths, { except })) {
    if (signal?.aborted || outage) break;
    if (found.kind !== "file") {
      note(found);
      continue;
    }
    const work = take(found.path).finally(() => running.delete(work));
    running.add(work);
    if (running.size >= AT_ONCE) await Promise.race(running);
  }
  await Promise.all(running);
  if (outage) throw outage;
  return { files, ids: files.flatMap((file) => (file.kind === "taken" ? [file.id] : [])) };
}
