import { existsSync } from "node:fs";
import { join } from "node:path";
import { openLocalEmbedder } from "./adapters/embed/local.ts";
import { openEmbeddedIndex } from "./adapters/embedded-index.ts";
import { openLocalEntities } from "./adapters/entities/local.ts";
import { openExtractor } from "./adapters/extract/local.ts";
import { openSqlGraph } from "./adapters/graph/sql.ts";
import { openTesseract } from "./adapters/ocr/tesseract.ts";
import { loadSettings, type Settings } from "./config.ts";
import { migrate, readMigrations } from "./database/migrate.ts";
import { openDatabase } from "./database/open.ts";
import { Documents } from "./documents/documents.ts";
import { DataFolder } from "./documents/files.ts";
import type { PipelineParts } from "./documents/lane-parts.ts";
import { documentLanes } from "./documents/lanes.ts";
import { type LegacyReport, migrateLegacy } from "./documents/legacy.ts";
import { documentQueues } from "./documents/queues.ts";
import { QuarryError } from "./errors.ts";
import { type Ingested, type IngestOptions, ingest } from "./ingest/ingest.ts";
import { createLog } from "./log.ts";
import { Crew } from "./queue/crew.ts";
import { checkedLane, Pauses } from "./queue/pauses.ts";
import { prepareQueue } from "./queue/prepare.ts";
import { type WorkerProcess, WorkerProcesses } from "./queue/worker-processes.ts";
import { openSearch, type Search } from "./search/search.ts";

export interface WorkOptions {
  /** Names of lanes; all unless said. */
  readonly lanes?: readonly string[];
  /** How long running tasks may take to finish when the work is stopped. */
  readonly graceMs?: number;
}

export interface Quarry {
  readonly settings: Settings;
  readonly documents: Documents;
  readonly search: Search;
  readonly lanes: LaneControl;
  /** Takes in files and folders; `work`, here or in another process, does the rest. */
  ingest(paths: readonly string[], options?: IngestOptions): Promise<Ingested>;
  /** Starts lanes and a janitor in this process. */
  work(options?: WorkOptions): Promise<Crew>;
  /** Brings over documents of the system before, from its own database or from this one. */
  migrateLegacy(fromUrl?: string): Promise<LegacyReport>;
  /** Processes that are at work. */
  workers(): Promise<WorkerProcess[]>;
  close(): Promise<void>;
}

export interface LaneControl {
  readonly names: readonly string[];
  paused(): Promise<Set<string>>;
  pause(lane: string): Promise<void>;
  resume(lane: string): Promise<void>;
}

/** Settings → database → adapters → features. The only place that knows all of them. */
export async function openQuarry(given: Partial<Settings> = {}): Promise<Quarry> {
  const { settings } = loadSettings({ given });
  const log = createLog({ level: settings.logLevel });
  const database = openDatabase(settings.databaseUrl, {
    onError: (error) => log.warn({ error }, "database"),
  });
  const closing: (() => Promise<unknown> | unknown)[] = [() => database.close()];
  const close = async () => {
    for (const step of closing.splice(0).reverse()) await step();
  };
  try {
    const queues = documentQueues(settings);
    await migrate(database, readMigrations(migrationsFolder(database.dialect.name)));
    for (const queue of Object.values(queues)) await prepareQueue(database, queue);
    const files = new DataFolder(settings.dataFolder);
    const parts = await openParts(settings, { database, queues, files }, closing);
    const lanes = documentLanes(parts);
    const names = lanes.map(({ queue }) => queue.name);
    const pauses = new Pauses(database);
    const processes = new WorkerProcesses(database, { silentMs: settings.staleMs });
    const documentsParts = {
      ...parts,
      attemptsMax: settings.attemptsMax,
      fileBytesMax: settings.fileMbMax * 1_048_576,
    };
    const documents = new Documents(documentsParts);
    return {
      settings,
      documents,
      search: openSearch(parts),
      lanes: {
        names,
        paused: () => pauses.list(),
        pause: async (lane) => pauses.pause(checkedLane(lane, names)),
        resume: async (lane) => pauses.resume(checkedLane(lane, names)),
      },
      ingest: (paths, options) => ingest({ documents, except: [settings.dataFolder] }, paths, options),
      work: async (options = {}) => {
        const wanted = options.lanes?.map((lane) => checkedLane(lane, names));
        const crew = new Crew({
          ...settings,
          database,
          log,
          lanes: lanes.filter(({ queue }) => wanted?.includes(queue.name) ?? true),
          ...(options.graceMs !== undefined && { graceMs: options.graceMs }),
        });
        if (!settings.isEnabled) {
          throw new QuarryError(
            "invalid_input",
            "TASK_QUEUE_ENABLED is false, so no lane is started; set it to true to work",
          );
        }
        closing.push(() => crew.stop());
        return crew.start();
      },
      migrateLegacy: async (fromUrl) => {
        if (fromUrl === undefined) return migrateLegacy(documentsParts);
        const from = openDatabase(fromUrl);
        return migrateLegacy(documentsParts, from).finally(() => from.close());
      },
      workers: () => processes.list(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Each is cheap to open; models are loaded when they are first needed. */
async function openParts(
  settings: Settings,
  base: Pick<PipelineParts, "database" | "queues" | "files">,
  closing: (() => Promise<unknown> | unknown)[],
): Promise<PipelineParts> {
  const keep = <T extends { close(): Promise<unknown> | unknown }>(part: T): T => {
    closing.push(() => part.close());
    return part;
  };
  const embedder = keep(await openLocalEmbedder());
  const index = keep(
    await openEmbeddedIndex({
      path: join(base.files.root, "index.db"),
      model: embedder.model,
      dimensions: embedder.dimensions,
    }),
  );
  return {
    ...base,
    extractor: keep(openExtractor({ fileMb: settings.fileMbMax, pagesMax: settings.pagesMax })),
    ocr: keep(
      await openTesseract({ languages: settings.ocrLanguages.split("+"), threads: settings.ocrThreads }),
    ),
    embedder,
    entities: keep(await openLocalEntities()),
    vectors: index.vectors,
    fulltext: index.fulltext,
    graph: keep(openSqlGraph(base.database)),
    pollMs: settings.pollMs,
    ocrThreads: settings.ocrThreads,
  };
}

/** Beside src in a checkout, beside dist in a package. */
function migrationsFolder(dialect: string): string {
  const folder = join(import.meta.dirname, "..", "migrations", dialect);
  if (existsSync(folder)) return folder;
  throw new QuarryError("internal", `${folder} is missing from the installation`);
}
