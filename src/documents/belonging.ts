import { randomUUID } from "node:crypto";
import type { FileStore } from "../adapters/files.ts";
import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";

/** Stands beside the files, and says whose they are. */
const ID_FILE = "folder-id";
const LOOK_EVERY_MS = 50;
const LOOKS_MAX = 20;

/** Which Quarry this is: the database's own name, made when there is none. */
export async function quarryId(database: Database, proposed: string = randomUUID()): Promise<string> {
  await database.query(
    `insert into data_folder (id) select ${database.dialect.mark(1)} where not exists (select 1 from data_folder) on conflict do nothing`,
    [proposed],
  );
  const [row] = await database.query("select id from data_folder");
  return String(row!.id);
}

/** Page files and index of another database would be taken for ours, and searches would find half of what is there. */
export async function refuseOtherFolder(database: Database, folder: FileStore): Promise<void> {
  const found = await readId(folder);
  const proposed = found ?? randomUUID();
  const own = await quarryId(database, proposed);
  if (own === proposed) return found === undefined ? writeId(folder, own) : undefined;
  if (found === undefined && (await idToCome(folder)) === own) return;
  throw new QuarryError(
    "invalid_input",
    `the data folder ${folder.place} does not belong to this database: set QUARRY_DATA to the folder that was used with it, or DATABASE_URL to another database`,
  );
}

/** Another process that opened the same new folder first is about to write its id. */
async function idToCome(folder: FileStore): Promise<string | undefined> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const found = await readId(folder);
    if (found !== undefined) return found;
    await pause(LOOK_EVERY_MS);
  }
  return undefined;
}

/** A bucket is taken into use by a database without documents; whoever moves files there brings the id along. */
export async function refuseOtherBucket(database: Database, bucket: FileStore): Promise<void> {
  if ((await whoseBucket(database, bucket)) === "nobody's") await writeId(bucket, await quarryId(database));
}

/** Only looks; one that cannot be ours is refused. */
export async function whoseBucket(database: Database, bucket: FileStore): Promise<"ours" | "nobody's"> {
  const [own] = await database.query("select id from data_folder");
  const found = await readId(bucket);
  if (found !== undefined && found === own?.id) return "ours";
  if (found === undefined && !(await hasDocuments(database))) return "nobody's";
  const said =
    found === undefined ? "does not hold the files of" : "holds the files of another database than";
  throw new QuarryError(
    "invalid_input",
    `${bucket.place} ${said} this database: set QUARRY_FILES to where they are, or, to move them there, copy "documents" and "${ID_FILE}" from where they were`,
  );
}

/** How the database remembers that its files are in the data folder, which may be mounted under many paths. */
const IN_DATA_FOLDER = "folder";

function placeOf(filesUrl: string | undefined): string {
  return filesUrl?.replace(/\/+$/, "") ?? IN_DATA_FOLDER;
}

/** A process with other settings than the rest would write where nobody looks. Without documents nothing is kept yet. */
export async function refuseOtherPlace(database: Database, filesUrl: string | undefined): Promise<void> {
  const [row] = await database.query("select files from data_folder");
  const known = row?.files ?? null;
  if (known === null || known === placeOf(filesUrl) || !(await hasDocuments(database))) return;
  const isFolder = known === IN_DATA_FOLDER;
  throw new QuarryError(
    "invalid_input",
    `this database keeps its files in ${isFolder ? "the data folder" : known}, and QUARRY_FILES is ${filesUrl ?? "not set"}: ${isFolder ? "unset it" : `set it to ${known}`}; or, if you have moved the files, stop all workers and run "quarry migrate files"`,
  );
}

export async function rememberPlace(database: Database, filesUrl: string | undefined): Promise<void> {
  const { mark } = database.dialect;
  await database.query(
    `update data_folder set files = ${mark(1)} where files is null or files <> ${mark(1)}`,
    [placeOf(filesUrl)],
  );
}

async function hasDocuments(database: Database): Promise<boolean> {
  return (await database.query("select 1 as found from documents limit 1")).length > 0;
}

async function readId(files: FileStore): Promise<string | undefined> {
  return (await files.read(ID_FILE))?.toString("utf8").trim() || undefined;
}

async function writeId(files: FileStore, id: string): Promise<void> {
  await files.put(ID_FILE, Buffer.from(`${id}\n`));
}
