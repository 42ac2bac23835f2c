import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Embedder } from "./adapters/embed.ts";
import { LimitsByService } from "./adapters/model-limits.ts";
import type { SettingProblem, Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { knownMigrations, newestOf, refuseNewer } from "./database/migrate.ts";
import { openDatabase } from "./database/open.ts";
import { type Finding, finding, type Look, Warning } from "./doctor/finding.ts";
import {
  hasTables,
  lookAtFiles,
  lookAtGraph,
  lookAtIndex,
  lookAtWorkers,
  lookForIndex,
} from "./doctor/stores.ts";
import { QuarryError } from "./errors.ts";
import { openLlm } from "./llm.ts";
import { silentLog } from "./log.ts";
import { openEmbedder, openOcr } from "./parts.ts";

const ANSWER_WITHIN_MS = 15_000;
const around = { log: silentLog, limits: new LimitsByService({ requests: undefined, tokens: undefined }) };

/** Which part a setting that is wrong belongs to. What stands not here is told as "settings". */
const PART_OF: Readonly<Record<string, string>> = {
  ...{ QUARRY_FILES: "files", AWS_ENDPOINT_URL_S3: "files", AWS_REGION: "files" },
  ...{ AWS_ACCESS_KEY_ID: "files", AWS_SECRET_ACCESS_KEY: "files", AWS_SESSION_TOKEN: "files" },
  ...{ QUARRY_VECTORS: "vectors", QDRANT_URL: "vectors", QDRANT_API_KEY: "vectors" },
  ...{ QUARRY_GRAPH: "graph", NEO4J_URL: "graph", NEO4J_PASSWORD: "graph" },
  ...{ REDIS_URL: "Redis", QUARRY_EMBEDDER: "embedder", QUARRY_OCR: "OCR", QUARRY_LLM: "LLM" },
};

interface ExamineOptions {
  /** There is a database to look into. */
  readonly isMade: boolean;
  readonly problems: readonly SettingProblem[];
}

/**
 * Looks at each part that the settings name, one after another, and goes on whatever it finds. Changes nothing that a
 * command which only reads would not.
 */
export async function* examine(
  settings: Settings,
  { isMade, problems }: ExamineOptions,
): AsyncGenerator<Finding> {
  const wrong = Map.groupBy(problems, ({ name }) => PART_OF[name] ?? "settings");
  /** A part whose settings are wrong is not looked at. */
  const at = (part: string, kind: string, look: Look): Promise<Finding> => {
    const refused = wrong.get(part);
    wrong.delete(part);
    const name = kind === "" ? part : `${part} (${kind})`;
    return refused ? failed(part, refused) : finding(name, look);
  };
  yield finding("Node.js", async () => process.versions.node);
  yield finding("data folder", () => lookAtFolder(settings));
  let opened: Database | undefined;
  const seen = await finding("database", async () => {
    if (!isMade) return "nothing there yet: the first ingest makes it";
    opened = openDatabase(settings.databaseUrl, { poolMax: 2 });
    return lookAtDatabase(opened);
  });
  yield seen;
  const answering = seen.health === "failed" ? undefined : opened;
  try {
    const database = answering && (await hasTables(answering)) ? answering : undefined;
    const { filesUrl } = settings;
    if (filesUrl !== undefined || database || wrong.has("files"))
      yield at("files", filesUrl === undefined ? "data folder" : "bucket", () =>
        lookAtFiles(settings, database),
      );
    if (database) yield finding("workers", () => lookAtWorkers(settings, database));
    // Of what is kept in a database that does not answer, or beside it, nothing can be said.
    const isKnown = seen.health !== "failed";
    if (isKnown || settings.graph !== "sql" || wrong.has("graph"))
      yield at("graph", settings.graph, () => lookAtGraph(settings, database));
    const look = async () => {
      if (!database) return lookForIndex(settings, answering);
      const embedder = await openEmbedder(settings, around);
      return lookAtIndex(settings, { database, embedder }).finally(() => embedder.close());
    };
    if (isKnown || settings.vectors === "qdrant" || wrong.has("vectors"))
      yield at("vectors", settings.vectors, look);
  } finally {
    await opened?.close();
  }
  const { redisUrl } = settings;
  if (redisUrl !== undefined) yield at("Redis", "", () => lookAtRedis(redisUrl));
  for (const { id, folders } of settings.rags.values())
    yield finding(`RAG ${id}`, () => lookAtSources(folders.sources));
  yield at("embedder", settings.embedder, () => lookAtEmbedder(settings));
  yield at("OCR", settings.ocr, () => lookAtOcr(settings));
  if (settings.llm !== "none") yield at("LLM", settings.llm, () => lookAtLlm(settings));
  for (const [part, refused] of wrong) yield failed(part, refused);
}

function failed(part: string, problems: readonly SettingProblem[]): Promise<Finding> {
  return finding(part, async () => {
    throw new QuarryError("invalid_input", problems.map(({ said }) => said).join("; "));
  });
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
  if (known === undefined) return `${name}, without tables: the next command makes them`;
  const [applied, newest] = [Number(known[0]!.version), newestOf(knownMigrations(database.dialect.name))];
  refuseNewer(applied, newest);
  const behind = applied < newest ? ` of ${newest}: the next command brings it up to date` : "";
  return `${name}, migration ${applied}${behind}`;
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
