import type { Embedder } from "../adapters/embed.ts";
import { checkFiles } from "../adapters/files.ts";
import { systemClock } from "../clock.ts";
import type { Settings } from "../config.ts";
import type { Database } from "../database/database.ts";
import { whoseBucket, whosePlace } from "../documents/belonging.ts";
import { QuarryError } from "../errors.ts";
import { openFileStore, placesOf } from "../file-store.ts";
import { ITEM_LANES } from "../ingest/queue.ts";
import { waitingItems } from "../ingest/waiting.ts";
import { silentLog } from "../log.ts";
import { openGraph } from "../parts.ts";
import { WorkerProcesses } from "../queue/worker-processes.ts";
import { openSearchIndex, reachQdrant } from "../search-index.ts";
import { Warning } from "./finding.ts";

const NOT_YET = "nothing there yet: the next command makes it";

/** As they are now: an older Quarry, or none, may have made the database. */
export function hasTables(database: Database): Promise<boolean> {
  return database.query("select files from data_folder").then(
    () => true,
    () => false,
  );
}

export async function lookAtWorkers(settings: Settings, database: Database): Promise<string | Warning> {
  const workers = await workersOf(settings, database).list(["active"]);
  const working = workers.filter(({ lanes }) => lanes.length > 0).length;
  const [row] = await database.query(
    "select count(*) as count from unified_queue where status in ('pending', 'in_progress')",
  );
  const open = Number(row!.count);
  if (working === 0 && open > 0)
    return new Warning(`${open} items wait and nobody works on them: run quarry up or quarry worker`);
  const { withoutWorkers } = await waitingItems(database, workers);
  if (withoutWorkers.length > 0)
    return new Warning(
      `items wait for workers on ${withoutWorkers.map(({ machine }) => machine).join(", ")}: run quarry worker --lanes ${ITEM_LANES.join(",")} there, or set QUARRY_MACHINE to that name where the paths can be seen too`,
    );
  return `${working} at work, ${open} items open`;
}

function workersOf({ staleMs }: Settings, database: Database): WorkerProcesses {
  return new WorkerProcesses(database, { silentMs: staleMs });
}

/** What the commands ask before they begin; and a file is written to a bucket, as they will. */
export async function lookAtFiles(
  settings: Settings,
  database: Database | undefined,
): Promise<string | Warning> {
  const { filesUrl } = settings;
  const places = database && placesOf(settings, { database, workers: workersOf(settings, database) });
  const folder = database && places && (await whosePlace(database, places));
  if (filesUrl === undefined) return folder === "ours" ? "where this database keeps them" : NOT_IN_USE;
  const files = await openFileStore(settings, systemClock);
  const whose = await checkFiles(files)
    .then(() => database && whoseBucket(database, files))
    .finally(() => files.close());
  const said = [`${filesUrl}: a file was written, read and deleted`, ...(whose ? [WHOSE[whose]] : [])];
  // Files for many machines with an index for one are most likely a mistake.
  return settings.vectors === "embedded" && /^postgres(ql)?:/.test(settings.databaseUrl)
    ? new Warning(
        `${said.join("; ")}; the index is in the data folder of this machine only: for workers on others, set QDRANT_URL or QUARRY_VECTORS=pgvector`,
      )
    : said.join("; ");
}

const NOT_IN_USE = "it is not in use yet";
const WHOSE = { ours: "it belongs to this database", "nobody's": NOT_IN_USE } as const;

/** Without tables a server of its own can be asked all the same. */
export async function lookAtGraph(settings: Settings, database: Database | undefined): Promise<string> {
  if (settings.graph === "sql" && database === undefined) return NOT_YET;
  const graph = await openGraph(settings, database, silentLog);
  return graph
    .check()
    .then(() => "answers")
    .finally(() => graph.close());
}

/** Says when documents were indexed elsewhere, too. */
export async function lookAtIndex(
  settings: Settings,
  parts: { database: Database; embedder: Embedder },
): Promise<string> {
  const index = await openSearchIndex(settings, { ...parts, log: silentLog });
  return index.vectors
    .count({ tenant: "default" })
    .then((count) => `answers, ${count} chunks of the tenant "default"`)
    .finally(() => index.close());
}

/** The place where an index is to be, when there are no tables that say what should be in it; pgvector's is the database. */
export async function lookForIndex(settings: Settings, database: Database | undefined): Promise<string> {
  switch (settings.vectors) {
    case "embedded":
      return NOT_YET;
    case "qdrant":
      await reachQdrant(settings);
      return "answers";
    case "pgvector":
      return lookForExtension(database!);
    default:
      return settings.vectors satisfies never;
  }
}

async function lookForExtension(database: Database): Promise<string> {
  const [row] = await database.query(
    "select default_version as version from pg_available_extensions where name = 'vector'",
  );
  if (row) return `pgvector ${row.version} is installed`;
  const said =
    "this PostgreSQL has no pgvector: install it there (postgresql-NN-pgvector), or set QUARRY_VECTORS to another store";
  throw new QuarryError("store_failed", said);
}
