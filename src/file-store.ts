import { resolve } from "node:path";
import { openFolderFiles } from "./adapters/files/folder.ts";
import type { FileStore } from "./adapters/files.ts";
import type { Clock } from "./clock.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import {
  quarryId,
  refuseOtherBucket,
  refuseOtherFolder,
  refuseOtherPlace,
  rememberPlace,
} from "./documents/belonging.ts";
import { DocumentFiles } from "./documents/files.ts";

/** Below the data folder: copies of files that are kept elsewhere. */
const COPIES = "copies";

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

/**
 * A data folder with files or an index in it belongs to one database, and so does a bucket; and a database keeps its
 * files in one of them. `areMoved`: somebody has moved them to where the settings say.
 */
export async function openDocumentFiles(
  settings: Settings,
  database: Database,
  { areMoved = false } = {},
): Promise<DocumentFiles> {
  const { filesUrl } = settings;
  const store = await openFileStore(settings, database.clock);
  const isElsewhere = filesUrl !== undefined;
  const isIndexHere = settings.vectors === "embedded" || database.dialect.name === "sqlite";
  if (!isElsewhere || isIndexHere) await refuseOtherFolder(database, openFolderFiles(settings.dataFolder));
  else await quarryId(database);
  const verify = async () => {
    if (isElsewhere) await refuseOtherBucket(database, store);
    if (!areMoved) await refuseOtherPlace(database, filesUrl);
    await rememberPlace(database, filesUrl);
  };
  const files = new DocumentFiles(store, { verify });
  // A bucket may be away, and then what needs no files goes on.
  if (!isElsewhere || areMoved) await files.verified();
  else await refuseOtherPlace(database, filesUrl);
  return files;
}
