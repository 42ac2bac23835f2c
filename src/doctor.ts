import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Embedder } from "./adapters/embed.ts";
import { checkFiles } from "./adapters/files.ts";
import { LimitsByService } from "./adapters/model-limits.ts";
import { systemClock } from "./clock.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { openDatabase } from "./database/open.ts";
import { refuseOtherPlace, whoseBucket } from "./documents/belonging.ts";
import { messageOf, QuarryError } from "./errors.ts";
import { openFileStore } from "./file-store.ts";
import { ITEM_LANES } from "./ingest/queue.ts";
import { openLlm } from "./llm.ts";
import { silentLog } from "./log.ts";
import { openEmbedder, openGraph, openOcr } from "./parts.ts";
import { type WorkerProcess, WorkerProcesses } from "./queue/worker-processes.ts";
import { openSearchIndex } from "./search-index.ts";

/** What was seen of a part. A failure says what to do about it. */
export interface Finding {
  readonly part: string;
  readonly health: "ok" | "warning" | "failed";
  readonly said: string;
  /** For a failure: 3 when the part is not reachable, else 1. */
  readonly exitCode: number;
}

type Look = () => Promise<string | Warning>;

class Warning {
  readonly said: string;

  constructor(said: string) {
    this.said = said;
  }
}

const ANSWER_WITHIN_MS = 15_000;
const around = { log: silentLog, limits: new LimitsByService({ requests: undefined, tokens: undefined }) };

/**
 * Looks at each part that the settings name, one after another, and goes on whatever it finds. Changes nothing that a
 * command which only reads would not.
 */
export async function* examine(
  settings: Settings,
  { isMade }: { /** There is a database to look into. */ readonly isMade: boolean },
): AsyncGenerator<Finding> {
  yield finding("Node.js", async () => process.versions.node);
  yield finding("data folder", () => lookAtFolder(settings));
  if (isMade) {
    const database = openDatabase(settings.databaseUrl, { poolMax: 2 });
    try {
      const found = await finding("database", () => lookAtDatabase(database));
      yield found;
      if (found.health === "failed") yield* files(settings);
      else {
        yield* files(settings, database);
        yield finding("workers", () => lookAtWorkers(settings, database));
        yield finding(`graph (${settings.graph})`, () => lookAtGraph(settings, database));
        yield finding(`vectors (${settings.vectors})`, () => lookAtIndex(settings, database));
      }
    } finally {
      await database.close();
    }
  } else {
    yield finding("database", async () => "nothing there yet: the first ingest makes it");
    yield* files(settings);
  }
  const { redisUrl } = settings;
  if (redisUrl !== undefined) yield finding("Redis", () => lookAtRedis(redisUrl));
  for (const { id, folders } of settings.rags.values())
    yield finding(`RAG ${id}`, () => lookAtSources(folders.sources));
  yield finding(`embedder (${settings.embedder})`, () => lookAtEmbedder(settings));
  yield finding(`OCR (${settings.ocr})`, () => lookAtOcr(settings));
  if (settings.llm !== "none") yield finding(`LLM (${settings.llm})`, () => lookAtLlm(settings));
}

/** Without a database there is nothing to say of files in the data folder. */
async function* files(settings: Settings, database?: Database): AsyncGenerator<Finding> {
  const { filesUrl } = settings;
  if (filesUrl === undefined && database === undefined) return;
  yield finding(`files (${filesUrl ?? "data folder"})`, () => lookAtFiles(settings, database));
}

async function finding(part: string, look: Look): Promise<Finding> {
  try {
    const seen = await look();
    return seen instanceof Warning
      ? { part, health: "warning", said: seen.said, exitCode: 0 }
      : { part, health: "ok", said: seen, exitCode: 0 };
  } catch (error) {
    const exitCode = error instanceof QuarryError ? error.exitCode : 1;
    return { part, health: "failed", said: messageOf(error), exitCode };
  }
}

async function lookAtFolder({ dataFolder, diskFreeMbMin }: Settings): Promise<string | Warning> {
  const folder = resolve(dataFolder);
  const info = await stat(folder).catch(() => undefined);
  const there = info ? folder : await nearestFolder(folder);
  await writable(there, "QUARRY_DATA");
  const { bavail, bsize } = await statfs(there);
  const freeMb = Math.floor((bavail * bsize) / 1_048_576);
  if (freeMb < diskFreeMbMin) {
    const said = `${freeMb} MB are free, less than QUARRY_DISK_FREE_MB_MIN (${diskFreeMbMin}): make room`;
    throw new QuarryError("disk_full", said);
  }
  const said = `${folder}${info ? "" : " (not made yet)"}, ${freeMb} MB free`;
  const isOpen = info !== undefined && process.platform !== "win32" && (info.mode & 0o077) !== 0;
  return isOpen ? new Warning(`${said}; others on this machine may look into it: chmod 700 ${folder}`) : said;
}

async function nearestFolder(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder))
    if (await stat(folder).catch(() => undefined)) return folder;
}

async function writable(folder: string, setting: string): Promise<void> {
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK).catch((cause) => {
    const said = `${folder} may not be written: give its owner the right to, or set ${setting} to another folder`;
    throw new QuarryError("invalid_input", said, { cause });
  });
}

async function lookAtDatabase(database: Database): Promise<string> {
  const isPostgres = database.dialect.name === "postgres";
  const sql = isPostgres ? "show server_version" : "select sqlite_version() as server_version";
  const [row] = await database.query(sql);
  const name = `${isPostgres ? "PostgreSQL" : "SQLite"} ${row!.server_version}`;
  const known = await database
    .query("select max(version) as version from quarry_migrations")
    .catch(() => undefined);
  const version = known?.[0]?.version;
  return version === undefined
    ? `${name}, without tables: the next command makes them`
    : `${name}, migration ${version}`;
}

async function lookAtWorkers({ staleMs }: Settings, database: Database): Promise<string | Warning> {
  const workers = await new WorkerProcesses(database, { silentMs: staleMs }).list(["active"]);
  const working = workers.filter(({ lanes }) => lanes.length > 0).length;
  const [row] = await database.query(
    "select count(*) as count from unified_queue where status in ('pending', 'in_progress')",
  );
  const open = Number(row!.count);
  if (working === 0 && open > 0)
    return new Warning(`${open} items wait and nobody works on them: run quarry up or quarry worker`);
  const alone = await machinesWithoutWorkers(database, workers);
  if (alone.length > 0)
    return new Warning(
      `items wait for workers on ${alone.join(", ")}: run quarry worker --lanes ${ITEM_LANES.join(",")} there, or set QUARRY_MACHINE to that name where the paths can be seen too`,
    );
  return `${working} at work, ${open} items open`;
}

/** Items about paths of theirs are taken by nobody else. */
async function machinesWithoutWorkers(
  database: Database,
  workers: readonly WorkerProcess[],
): Promise<string[]> {
  if (!(await hasTables(database))) return [];
  const rows = await database.query(
    "select distinct seen_on from unified_queue where status = 'pending' and seen_on <> '' order by seen_on",
  );
  const isThere = (machine: string) =>
    workers.some(({ host, lanes }) => host === machine && lanes.includes(ITEM_LANES[0]));
  return rows.map(({ seen_on: machine }) => String(machine)).filter((machine) => !isThere(machine));
}

async function lookAtGraph(settings: Settings, database: Database): Promise<string> {
  const graph = await openGraph(settings, database, silentLog);
  return graph
    .check()
    .then(() => "answers")
    .finally(() => graph.close());
}

/** Says when documents were indexed elsewhere, too. */
async function lookAtIndex(settings: Settings, database: Database): Promise<string> {
  const embedder = await openEmbedder(settings, around);
  try {
    const index = await openSearchIndex(settings, { database, embedder, log: silentLog });
    return await index.vectors
      .count({ tenant: "default" })
      .then((count) => `answers, ${count} chunks of the tenant "default"`)
      .finally(() => index.close());
  } finally {
    await embedder.close();
  }
}

/** Files for many machines with an index for one are most likely a mistake. */
async function lookAtFiles(settings: Settings, database: Database | undefined): Promise<string | Warning> {
  const known = database && (await hasTables(database)) ? database : undefined;
  if (known) await refuseOtherPlace(known, settings.filesUrl);
  if (settings.filesUrl === undefined) return "where this database keeps them";
  const files = await openFileStore(settings, systemClock);
  const whose = await checkFiles(files)
    .then(() => known && whoseBucket(known, files))
    .finally(() => files.close());
  const said = `a file was written, read and deleted${whose ? WHOSE[whose] : ""}`;
  return settings.vectors === "embedded" && /^postgres(ql)?:/.test(settings.databaseUrl)
    ? new Warning(
        `${said}; the index is in the data folder of this machine only: for workers on others, set QDRANT_URL or QUARRY_VECTORS=pgvector`,
      )
    : said;
}

const WHOSE = { ours: "; it belongs to this database", "nobody's": "; it is not in use yet" } as const;

/** As they are now: an older Quarry, or none, may have made the database. */
function hasTables(database: Database): Promise<boolean> {
  return database.query("select files from data_folder").then(
    () => true,
    () => false,
  );
}

async function lookAtRedis(url: string): Promise<string | Warning> {
  const { RedisLink } = await import("./rag/redis-link.ts");
  const link = new RedisLink({ url, log: silentLog });
  try {
    const version = /redis_version:(\S+)/.exec(String(await link.command("INFO", "server")))?.[1];
    const setting = async (name: string) => {
      const answer = await link.command("CONFIG", "GET", name).catch(() => undefined);
      return Array.isArray(answer) ? String(answer[1]) : undefined;
    };
    const [aof, policy] = [await setting("appendonly"), await setting("maxmemory-policy")];
    const wrong = [
      ...(aof === "no" ? ["what it holds is lost with it: set appendonly yes"] : []),
      ...(policy !== undefined && policy !== "noeviction"
        ? [`it may throw jobs away (${policy}): set maxmemory-policy noeviction`]
        : []),
    ];
    if (wrong.length > 0) return new Warning(`${version}; ${wrong.join("; ")}`);
    return aof === undefined ? `${version}; its settings may not be read` : `${version}, kept on disk`;
  } finally {
    await link.close();
  }
}

async function lookAtSources(folder: string): Promise<string> {
  const info = await stat(folder).catch(() => undefined);
  await writable(info ? folder : await nearestFolder(folder), "sources");
  return info ? folder : `${folder} (made with the first file)`;
}

async function lookAtEmbedder(settings: Settings): Promise<string> {
  const embedder: Embedder = await openEmbedder(settings, around);
  return answered((signal) => embedder.embed(["Is anybody there?"], signal))
    .then(({ vectors }) => `${embedder.model}, ${vectors[0]!.length} dimensions`)
    .finally(() => embedder.close());
}

async function lookAtOcr(settings: Settings): Promise<string> {
  const ocr = await openOcr(settings, around);
  return answered((signal) => ocr.recognise(BLANK, signal))
    .then(() => ocr.version)
    .finally(() => ocr.close());
}

async function lookAtLlm(settings: Settings): Promise<string> {
  const llm = openLlm(settings, around)!;
  const messages = [{ role: "user", content: "Is anybody there?" }] as const;
  return answered((signal) =>
    llm.complete({ system: "Answer with one word.", messages, tokensMax: 16 }, signal),
  )
    .then(() => `${llm.model} answers`)
    .finally(() => llm.close());
}

async function answered<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  return ask(signal).catch((error) => {
    if (!signal.aborted) throw error;
    const said = `no answer within ${ANSWER_WITHIN_MS / 1_000} s: check that it runs, and its address in the settings`;
    throw new QuarryError("model_unavailable", said, { cause: error });
  });
}

/** A white picture of 64 × 64 points, as PNG. */
const BLANK = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAMAAACdt4HsAAAAA1BMVEX///+nxBvIAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAG0lEQVRYw+3BgQAAAADDoPlT3+AEVQEAAAB8AxBAAAEZszF2AAAAAElFTkSuQmCC",
  "base64",
);
