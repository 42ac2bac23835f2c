import { randomUUID } from "node:crypto";
import type { FileStore } from "../adapters/files.ts";
import type { Database, Session } from "../database/database.ts";
import { QuarryError } from "../errors.ts";

/** Stands beside the files, and says whose they are. */
const ID_FILE = "folder-id";

/** Where a process would keep files, and what comes with it on this machine. */
export interface Places {
  /** A bucket; undefined: the data folder. */
  readonly filesUrl: string | undefined;
  /** The data folder, when files or an index are in it. */
  readonly folder: FileStore | undefined;
  /** Somebody has moved the files to where the settings say. */
  readonly areMoved: boolean;
  /** Whether workers run, which keep files where the database says now. */
  readonly isAtWork: () => Promise<boolean>;
}

export type Whose = "ours" | "nobody's";

/** What the database knows of its files. */
interface Known {
  readonly id: string | undefined;
  readonly place: string | undefined;
  readonly hasDocuments: boolean;
}

/** What stands in the file: the database's id and, in a folder, which folder that is, wherever it is mounted. */
interface Mark {
  readonly id: string;
  readonly folder: string | undefined;
}

/**
 * Looks, and takes nothing: a process with other settings than the rest would write where nobody looks, and page files
 * and index of another database would be taken for ours. Without documents nothing is kept yet, and whoever begins
 * decides. A bucket may be away: it is asked by `whoseBucket`.
 */
export async function whosePlace(database: Database, places: Places): Promise<Whose> {
  const known = await knownOf(database);
  const mark = places.folder && (await readMark(places.folder));
  await refuseOtherPlace(known, mark, places);
  return places.folder ? whoseFolder(known, mark, places) : "ours";
}

/** The same, and a folder that is nobody's is taken into use. */
export async function takePlace(database: Database, places: Places): Promise<void> {
  const { folder } = places;
  const whose = await whosePlace(database, places);
  if (folder && (whose === "nobody's" || (await knownOf(database)).id === undefined))
    await takeFolder(database, folder, places);
  else await quarryId(database, database, randomUUID());
}

/** One process after another, so that all that begin with a new folder or database find one mark. */
async function takeFolder(database: Database, folder: FileStore, places: Places): Promise<void> {
  await database.transaction(async (session) => {
    // SQLite's `begin immediate` is the lock already.
    if (database.dialect.name === "postgres")
      await session.query("lock table data_folder in share row exclusive mode");
    const mark = await readMark(folder);
    const id = await quarryId(database, session, mark?.id ?? randomUUID());
    if (mark && mark.id !== id) throw otherFolder(folder, places);
    if (!mark) await folder.put(ID_FILE, Buffer.from(`${id} ${randomUUID()}\n`));
  });
}

/** Which Quarry this is: the database's own name, made when there is none. */
async function quarryId(database: Database, session: Session, proposed: string): Promise<string> {
  await session.query(
    `insert into data_folder (id) select ${database.dialect.mark(1)} where not exists (select 1 from data_folder) on conflict do nothing`,
    [proposed],
  );
  const [row] = await session.query("select id from data_folder");
  return String(row!.id);
}

/** Only looks; one that cannot be ours is refused. Whoever moves files there brings the id along. */
export async function whoseBucket(database: Database, bucket: FileStore): Promise<Whose> {
  const { id, hasDocuments } = await knownOf(database);
  const mark = await readMark(bucket);
  if (mark !== undefined && mark.id === id) return "ours";
  if (mark === undefined && !hasDocuments) return "nobody's";
  const said = mark === undefined ? "does not hold the files of" : "holds the files of another database than";
  throw new QuarryError(
    "invalid_input",
    `${bucket.place} ${said} this database: set QUARRY_FILES to where they are, or, to move them there, copy "documents" and "${ID_FILE}" from where they were`,
  );
}

/** A bucket is taken into use by a database without documents. */
export async function takeBucket(database: Database, bucket: FileStore): Promise<void> {
  if ((await whoseBucket(database, bucket)) === "ours") return;
  const { id } = await knownOf(database);
  await bucket.put(ID_FILE, Buffer.from(`${id}\n`));
}

/**
 * From now on files are there, for every process of this database. Says whether that stays so: until there are
 * documents, others may still decide otherwise.
 */
export async function rememberPlace(database: Database, places: Places): Promise<boolean> {
  const { mark } = database.dialect;
  const place = placeOf(places.filesUrl, places.folder && (await readMark(places.folder)));
  const mayMove = places.areMoved ? "" : " and (files is null or not exists (select 1 from documents))";
  await database.query(
    `update data_folder set files = ${mark(1)} where (files is null or files <> ${mark(1)})${mayMove}`,
    [place],
  );
  const known = await knownOf(database);
  // Somebody was quicker.
  if (known.place !== place) await whosePlace(database, places);
  return known.hasDocuments;
}

async function refuseOtherPlace(known: Known, mark: Mark | undefined, places: Places): Promise<void> {
  const { filesUrl } = places;
  const isFolder = known.place?.startsWith(IN_DATA_FOLDER);
  if (places.areMoved || (isFolder && filesUrl === undefined)) return;
  if (isKnown(known, placeOf(filesUrl, mark)) || (await isUndecided(known, places))) return;
  throw new QuarryError(
    "invalid_input",
    `this database keeps its files in ${isFolder ? "the data folder" : known.place}, and QUARRY_FILES is ${filesUrl ?? "not set"}: ${isFolder ? "unset it" : `set it to ${known.place}`}; or, if you have moved the files, stop all workers and servers and run "quarry migrate files"`,
  );
}

/** Without a mark, nothing says whose it is. */
async function whoseFolder(known: Known, mark: Mark | undefined, places: Places): Promise<Whose> {
  const { filesUrl, folder, areMoved } = places;
  const isForIndex = filesUrl !== undefined;
  if (mark === undefined) {
    if (isForIndex ? !known.hasDocuments : await isUndecided(known, places)) return "nobody's";
  } else if (known.id === undefined || known.id === mark.id) {
    if (isForIndex || areMoved || isKnown(known, placeOf(filesUrl, mark))) return "ours";
    if (await isUndecided(known, places)) return "ours";
  }
  throw otherFolder(folder!, places);
}

function isKnown(known: Known, place: string): boolean {
  return known.place === undefined || known.place === place;
}

/** There are no files yet, and nobody who is about to make some. */
async function isUndecided(known: Known, { isAtWork }: Places): Promise<boolean> {
  return !known.hasDocuments && (known.place === undefined || !(await isAtWork()));
}

function otherFolder({ place }: FileStore, { areMoved }: Pick<Places, "areMoved">): QuarryError {
  const moving = `; to move the files there, copy "documents" and "${ID_FILE}" from where they were`;
  return new QuarryError(
    "invalid_input",
    `the data folder ${place} does not belong to this database: set QUARRY_DATA to the folder that was used with it, or DATABASE_URL to another database${areMoved ? moving : ""}`,
  );
}

/** How the database remembers that its files are in a data folder, which may be mounted under many paths. */
const IN_DATA_FOLDER = "folder";

function placeOf(filesUrl: string | undefined, mark: Mark | undefined): string {
  if (filesUrl !== undefined) return filesUrl.replace(/\/+$/, "");
  return mark?.folder === undefined ? IN_DATA_FOLDER : `${IN_DATA_FOLDER} ${mark.folder}`;
}

async function knownOf(session: Session): Promise<Known> {
  const [row] = await session.query("select id, files from data_folder");
  const documents = await session.query("select 1 as found from documents limit 1");
  const text = (value: unknown) => (value == null ? undefined : String(value));
  return { id: text(row?.id), place: text(row?.files), hasDocuments: documents.length > 0 };
}

async function readMark(files: FileStore): Promise<Mark | undefined> {
  const words = (await files.read(ID_FILE))?.toString("utf8").trim().split(/\s+/);
  const [id, folder] = words ?? [];
  return id ? { id, folder } : undefined;
}
