import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { openFolderFiles } from "./adapters/files/folder.ts";
import { removeLeftCopies } from "./adapters/files/local-copies.ts";
import type { FileStore } from "./adapters/files.ts";
import type { Clock } from "./clock.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { type Places, rememberPlace, takeBucket, takePlace, whosePlace } from "./documents/belonging.ts";
import { DocumentFiles } from "./documents/files.ts";
import { refuseMissingOriginals } from "./documents/moved.ts";
import type { WorkerProcesses } from "./queue/worker-processes.ts";

/** Below the data folder: copies of files that are kept elsewhere. */
const COPIES = "copies";
/** Nobody else's to read. */
const PRIVATE = 0o700;

/** Settings → where files are kept. */
export async function openFileStore(settings: Settings, clock: Clock): Promise<FileStore> {
  const { filesUrl: url, dataFolder, s3Endpoint: endpoint, s3Region: region } = settings;
  if (url === undefined) return openFolderFiles(dataFolder);
  const { openS3Files } = await import("./adapters/files/s3.ts");
  return openS3Files({
    ...{ url, endpoint, region, clock },
    accessKeyId: settings.s3AccessKeyId!,
    secretAccessKey: settings.s3SecretAccessKey!,
    sessionToken: settings.s3SessionToken,
    cacheFolder: resolve(dataFolder, COPIES),
  });
}

/** What has to belong to the database, with these settings. */
export function placesOf(
  settings: Settings,
  parts: { database: Database; workers: WorkerProcesses; areMoved?: boolean },
): Places {
  const { filesUrl, dataFolder, vectors } = settings;
  const { database, workers, areMoved = false } = parts;
  const isIndexHere = vectors === "embedded" || database.dialect.name === "sqlite";
  return {
    ...{ filesUrl, areMoved },
    folder: filesUrl === undefined || isIndexHere ? openFolderFiles(dataFolder) : undefined,
    isAtWork: async () => (await workers.list()).some(({ lanes }) => lanes.length > 0),
  };
}

/**
 * A data folder with files or an index in it belongs to one database, and so does a bucket; and a database keeps its
 * files in one of them. `areMoved`: somebody has moved them to where the settings say.
 */
export async function openDocumentFiles(
  settings: Settings,
  parts: { database: Database; workers: WorkerProcesses; areMoved: boolean },
): Promise<DocumentFiles> {
  const { database, areMoved } = parts;
  const store = await openFileStore(settings, database.clock);
  const places = placesOf(settings, parts);
  const isElsewhere = settings.filesUrl !== undefined;
  await takePlace(database, places);
  await mkdir(settings.dataFolder, { recursive: true, mode: PRIVATE });
  await removeLeftCopies(resolve(settings.dataFolder, COPIES), database.clock);
  const verify = async () => {
    await whosePlace(database, places);
    if (isElsewhere) await takeBucket(database, store);
    if (areMoved) await refuseMissingOriginals(database, store);
    return rememberPlace(database, places);
  };
  const files = new DocumentFiles(store, { verify });
  // A bucket may be away, and then what needs no files goes on.
  if (!isElsewhere || areMoved) await files.verified();
  return files;
}
