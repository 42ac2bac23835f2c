import { lstat } from "node:fs/promises";
import { extname, join } from "node:path";
import { RagError } from "./errors.ts";

/** What is written beside a file in failed/. */
export const ERROR_RECORD_ENDING = ".error.json";

const NAME_BYTES_MAX = 255;
/** Room for a suffix, the ending of an error record and a temporary name. */
const ROOM_BYTES = 48;
const SUFFIXES_MAX = 10_000;
const SUFFIX = /~\d{1,5}$/;

/** A name that names a file in a folder and nothing else. */
export function checkedFilename(name: string): string {
  const isPlain = name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name);
  if (isPlain && Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  throw new RagError(
    "ERR_PATH_NOT_ALLOWED",
    `filename ${JSON.stringify(name.slice(0, 200))} is not taken: give a name without slashes`,
  );
}

/** The same for a name that could not be checked, to write something under it all the same. */
export function plainFilename(name: string): string {
  const plain = name.replaceAll(/[/\\\0]/g, "_").replace(/^\.+/, "_");
  return shortened(plain === "" ? "_" : plain);
}

/**
 * A name that is not taken in the folder, nor is the one of its error record. Only a proposal: whoever uses it must not
 * overwrite what came meanwhile.
 */
export async function freeName(folder: string, wanted: string): Promise<string> {
  const name = shortened(wanted);
  const ending = extname(name);
  const stem = name.slice(0, name.length - ending.length).replace(SUFFIX, "");
  for (let count = 1; count <= SUFFIXES_MAX; count++) {
    const proposed = count === 1 ? name : `${stem}~${count}${ending}`;
    const taken = await Promise.all(
      [proposed, proposed + ERROR_RECORD_ENDING].map((one) => isThere(join(folder, one))),
    );
    if (!taken.includes(true)) return proposed;
  }
  throw new RagError("ERR_MOVE_FAILED", `${folder} has ${SUFFIXES_MAX} files called ${wanted}: clear it`);
}

export async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}

/** Keeps the extension, and whole characters. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX - ROOM_BYTES) return name;
  const extension = extname(name);
  const ending = Buffer.byteLength(extension) <= 20 ? extension : "";
  let stem = name.slice(0, name.length - ending.length);
  while (Buffer.byteLength(stem + ending) > NAME_BYTES_MAX - ROOM_BYTES)
    stem = [...stem].slice(0, -1).join("");
  return stem + ending;
}
