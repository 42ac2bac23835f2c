import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadSettings, type Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { migrate, readMigrations } from "./database/migrate.ts";
import { openDatabase } from "./database/open.ts";
import { Documents } from "./documents/documents.ts";
import { DataFolder } from "./documents/files.ts";
import { type LegacyReport, migrateLegacy } from "./documents/legacy.ts";
import { type DocumentQueues, documentQueues } from "./documents/queues.ts";
import { messageOf, QuarryError } from "./errors.ts";
import { type Ingested, type IngestOptions, ingest } from "./ingest/ingest.ts";
import { createLog, type Log } from "./log.ts";
import type { OpenedParts } from "./parts.ts";
import { Crew } from "./queue/crew.ts";
import type { Queue } from "./queue/declaration.ts";
import { checkedLane, Pauses } from "./queue/pauses.ts";
import { prepareQueue } from "./queue/prepare.ts";
import { openQueue } from "./queue/store.ts";
import { type WorkerProcess, WorkerProcesses } from "./queue/worker-processes.ts";
import { checkReadiness, type Readiness } from "./readiness.ts";
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
  /** Rows of every queue by status. */
  counts(): Promise<QueueCounts[]>;
  /** Whether what is handed in now would be kept. */
  readiness(): Promise<Readiness>;
  close(): Promise<void>;
}

export interface QueueCounts {
  readonly queue: string;
  readonly counts: Readonly<Record<string, number>>;
}

export interface LaneControl {
  readonly names: readonly string[];
  paused(): Promise<Set<string>>;
  pause(lane: string): Promise<void>;
  resume(lane: string): Promise<void>;
}

/** Settings → database → features. Readers and models are opened when work or a search first needs them. */
export async function openQuarry(given: Partial<Settings> = {}): Promise<Quarry> {
  const { settings } = loadSettings({ given });
  const log = createLog({ level: settings.logLevel });
  const database = openDatabase(settings.databaseUrl, {
    onError: (error) => log.warn({ error: messageOf(error) }, "database"),
  });
  try {
    const queues = documentQueues(settings);
    await migrate(database, readMigrations(migrationsFolder(database.dialect.name)));
    for (const queue of Object.values(queues)) await prepareQueue(database, queue);
    const files = new DataFolder(settings.dataFolder);
    await belongTogether(database, files);
    return new App({ settings, log, database, queues, files });
  } catch (error) {
    await database.close();
    throw error;
  }
}

interface AppParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly database: Database;
  readonly queues: DocumentQueues;
  readonly files: DataFolder;
}

class App implements Quarry {
  readonly settings: Settings;
  readonly documents: Documents;
  readonly lanes: LaneControl;
  readonly #app: AppParts;
  readonly #crews: Crew[] = [];
  #parts: Promise<OpenedParts> | undefined;

  constructor(app: AppParts) {
    this.#app = app;
    this.settings = app.settings;
    this.documents = new Documents(this.#documentsParts);
    this.lanes = laneControl(app);
  }

  readonly search: Search = {
    search: async (query, signal) => openSearch(await this.#openParts()).search(query, signal),
  };

  ingest(paths: readonly string[], options?: IngestOptions): Promise<Ingested> {
    return ingest({ documents: this.documents, except: [this.settings.dataFolder] }, paths, options);
  }

  async work(options: WorkOptions = {}): Promise<Crew> {
    if (!this.settings.isEnabled) {
      throw new QuarryError(
        "invalid_input",
        "TASK_QUEUE_ENABLED is false, so no lane is started; set it to true to work",
      );
    }
    const wanted = options.lanes?.map((lane) => checkedLane(lane, this.lanes.names));
    const { documentLanes } = await import("./documents/lanes.ts");
    const lanes = documentLanes(await this.#openParts());
    const crew = new Crew({
      ...this.settings,
      ...this.#app,
      lanes: lanes.filter(({ queue }) => wanted?.includes(queue.name) ?? true),
      ...(options.graceMs !== undefined && { graceMs: options.graceMs }),
    });
    this.#crews.push(crew);
    return crew.start();
  }

  async migrateLegacy(fromUrl?: string): Promise<LegacyReport> {
    if (fromUrl === undefined) return migrateLegacy(this.#documentsParts);
    const from = openDatabase(fromUrl);
    return migrateLegacy(this.#documentsParts, from).finally(() => from.close());
  }

  workers(): Promise<WorkerProcess[]> {
    return new WorkerProcesses(this.#app.database, { silentMs: this.settings.staleMs }).list();
  }

  counts(): Promise<QueueCounts[]> {
    const { database, queues } = this.#app;
    return Promise.all(
      Object.values(queues).map(async (queue) => {
        const counts = await openQueue(database, queue as Queue).countByStatus();
        return { queue: queue.name, counts: Object.fromEntries(counts) };
      }),
    );
  }

  readiness(): Promise<Readiness> {
    const { dataFolder, diskFreeMbMin } = this.settings;
    return checkReadiness({ database: this.#app.database, dataFolder, diskFreeMbMin });
  }

  async close(): Promise<void> {
    for (const crew of this.#crews.splice(0)) await crew.stop();
    await (await this.#parts?.catch(() => undefined))?.close();
    await this.#app.database.close();
  }

  get #documentsParts() {
    const { attemptsMax, fileMbMax } = this.settings;
    return { ...this.#app, attemptsMax, fileBytesMax: fileMbMax * 1_048_576 };
  }

  /** Loaded when needed: most commands only look at rows. */
  #openParts(): Promise<OpenedParts> {
    this.#parts ??= import("./parts.ts").then(({ openParts }) => openParts(this.settings, this.#app));
    return this.#parts;
  }
}

function laneControl({ database, queues }: AppParts): LaneControl {
  const names = Object.values(queues).map(({ name }) => name);
  const pauses = new Pauses(database);
  return {
    names,
    paused: () => pauses.list(),
    pause: async (lane) => pauses.pause(checkedLane(lane, names)),
    resume: async (lane) => pauses.resume(checkedLane(lane, names)),
  };
}

/** Page files and index of another database would be taken for ours, and searches would find half of what is there. */
async function belongTogether(database: Database, files: DataFolder): Promise<void> {
  const own = (await files.readId()) ?? randomUUID();
  const mark = database.dialect.name === "postgres" ? "$1" : "?1";
  await database.query(
    `insert into data_folder (id) select ${mark} where not exists (select 1 from data_folder)`,
    [own],
  );
  const [row] = await database.query("select id from data_folder");
  if (row?.id === own) return files.writeId(own);
  throw new QuarryError(
    "invalid_input",
    `the data folder ${files.root} does not belong to this database: set QUARRY_DATA to the folder that was used with it, or DATABASE_URL to another database`,
  );
}

/** Beside src in a checkout, beside dist in a package. */
function migrationsFolder(dialect: string): string {
  const folder = join(import.meta.dirname, "..", "migrations", dialect);
  if (existsSync(folder)) return folder;
  throw new QuarryError("internal", `${folder} is missing from the installation`);
}
