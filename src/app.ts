import { join, resolve } from "node:path";
import { chosenEmbedder } from "./adapters/embed/choice.ts";
import { LimitsByService } from "./adapters/model-limits.ts";
import type { Asked, Asks } from "./agents/ask.ts";
import { agentLane } from "./agents/lane.ts";
import { loadFunctions } from "./agents/load.ts";
import { type FunctionTaskPayload, functionQueue } from "./agents/queue.ts";
import { type AgentFunction, FunctionRegistry } from "./agents/registry.ts";
import { Tasks } from "./agents/tasks.ts";
import { type Asking, type AskOptions, openAsking } from "./asking.ts";
import { type Changes, followChanges } from "./changes.ts";
import { systemClock } from "./clock.ts";
import { type GivenSettings, loadSettings, type Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { knownMigrations, migrate } from "./database/migrate.ts";
import { openDatabase } from "./database/open.ts";
import { Documents } from "./documents/documents.ts";
import type { DocumentFiles } from "./documents/files.ts";
import { type LegacyReport, migrateLegacy } from "./documents/legacy.ts";
import { type DocumentQueues, documentQueues } from "./documents/queues.ts";
import { SearchableDocuments } from "./documents/searchable.ts";
import { EmbeddingJobs } from "./embeddings/jobs.ts";
import { embeddingLane } from "./embeddings/lane.ts";
import { embeddingQueue, type JobPayload } from "./embeddings/queue.ts";
import { remoteEmbeddings } from "./embeddings/remote.ts";
import { setDefaultModel } from "./embeddings/rules.ts";
import { vectorTypeOf } from "./embeddings/vectors.ts";
import { isQuarryError, messageOf, QuarryError } from "./errors.ts";
import { openDocumentFiles } from "./file-store.ts";
import { type Ingested, type IngestOptions, ingest } from "./ingest/ingest.ts";
import { Items } from "./ingest/items.ts";
import { itemLanes } from "./ingest/lane.ts";
import {
  droppedTables,
  type LegacyQueuesOptions,
  type LegacyTableReport,
  migrateQueues,
} from "./ingest/legacy.ts";
import { columnsOf, openLegacySource } from "./ingest/legacy-source.ts";
import { type ItemQueues, itemQueues } from "./ingest/queue.ts";
import { createLog, hideSecrets, type Log } from "./log.ts";
import type { OpenedParts } from "./parts.ts";
import { Crew } from "./queue/crew.ts";
import type { Queue } from "./queue/declaration.ts";
import { createJanitor, type Janitor, type Tended } from "./queue/janitor.ts";
import type { LaneDeclaration } from "./queue/lane.ts";
import type { LaneStore } from "./queue/lane-store.ts";
import { StoreOutages } from "./queue/outage.ts";
import { checkedLane, Pauses } from "./queue/pauses.ts";
import { prepareQueue } from "./queue/prepare.ts";
import { RemoteWork } from "./queue/remote.ts";
import { openQueue } from "./queue/store.ts";
import { type WorkerProcess, WorkerProcesses, type WorkerState } from "./queue/worker-processes.ts";
import { RagJobs } from "./rag/jobs.ts";
import { ragLane } from "./rag/lane.ts";
import { openRagQueue } from "./rag/open.ts";
import { ragQueue } from "./rag/queue.ts";
import { checkChunking } from "./rag/settings.ts";
import { checkReadiness, type Readiness } from "./readiness.ts";
import { openSearch, type Search } from "./search/search.ts";
import { VERSION } from "./version.ts";

export interface WorkOptions {
  /** Names of lanes; all unless said. */
  readonly lanes?: readonly string[];
  /** How long running tasks may take to finish when the work is stopped. */
  readonly graceMs?: number;
}

export interface Quarry {
  readonly settings: Settings;
  /** How many it took to bring the database up to date when it was opened. */
  readonly migrationsApplied: number;
  readonly documents: Documents;
  readonly search: Search;
  readonly embeddings: EmbeddingJobs;
  /** The front door: everything that changes comes in as an item. */
  readonly queue: Items;
  /** Steps of agents: functions that run one at a time for each planner and worker. */
  readonly tasks: Tasks;
  /** Files of RAGs, by the Redis contract. */
  readonly rag: RagJobs;
  /** Questions: put into line, followed, cancelled. */
  readonly asks: Asks;
  /** Answers a question from what was ingested; works on it here when no other process does. */
  ask(question: string, options?: AskOptions): Promise<Asked>;
  readonly lanes: LaneControl;
  /** Puts files and folders into line; `work`, here or in another process, does the rest. */
  ingest(paths: readonly string[], options?: IngestOptions): Promise<Ingested>;
  /** Starts lanes and a janitor in this process. */
  work(options?: WorkOptions): Promise<Crew>;
  /** Brings over documents and queues of the systems before, from their own database or from this one. */
  migrateLegacy(fromUrl?: string, options?: LegacyQueuesOptions): Promise<LegacySystemReport>;
  /** Makes the index anew, for another embedder. Returns how many documents will be embedded again. */
  reindex(): Promise<number>;
  /** For workers that are not processes of this program. */
  readonly remote: RemoteWork;
  /** Processes and workers elsewhere that are at work, unless other states are asked for. */
  workers(states?: readonly WorkerState[]): Promise<WorkerProcess[]>;
  /** Looks after the rows of workers that fell silent, in a process that runs no lanes. */
  tend(): Janitor;
  /** What happens to documents and jobs, in any process, as it happens. */
  changes(options: { since?: string | undefined; signal: AbortSignal }): AsyncGenerator<Changes>;
  /** Rows of every queue by status. */
  counts(): Promise<QueueCounts[]>;
  /** Whether what is handed in now would be kept. */
  readiness(): Promise<Readiness>;
  close(): Promise<void>;
}

export interface LegacySystemReport extends LegacyReport {
  readonly queues: readonly LegacyTableReport[];
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

export interface OpenOptions extends GivenSettings {
  /** The files of documents were moved to where the settings say now. */
  readonly areFilesMoved?: boolean;
  /** Functions of one's own, for tasks to name. */
  readonly functions?: readonly AgentFunction[];
}

/** Settings → database → features. Readers and models are opened when work or a search first needs them. */
export async function openQuarry({
  functions = [],
  areFilesMoved: areMoved = false,
  ...given
}: OpenOptions = {}): Promise<Quarry> {
  const { settings, warnings } = loadSettings({ given });
  const log = createLog({ level: settings.logLevel });
  for (const warning of warnings) log.warn(warning);
  const outages = new StoreOutages({ log, clock: systemClock });
  const database = openDatabase(settings.databaseUrl, {
    poolMax: settings.poolMax,
    onError: (error) => outages.meet(error, {}, "database"),
  });
  try {
    const queues = documentQueues(settings);
    const model = settings.embeddingModel ?? chosenEmbedder(settings.embedder).model;
    const jobQueue = embeddingQueue({ ...settings, model });
    const applied = await migrate(database, knownMigrations(database.dialect.name));
    const itemQueue = itemQueues(settings);
    const taskQueue = functionQueue(settings);
    for (const queue of [...Object.values(queues), jobQueue, ...Object.values(itemQueue), taskQueue])
      await prepareQueue(database, queue);
    const workers = new WorkerProcesses(database, { silentMs: settings.staleMs });
    if (areMoved) refuseWorkers(await workers.list(), "have the files open");
    const files = await openDocumentFiles(settings, { database, workers, areMoved });
    await setDefaultModel(database, model);
    const vectorType = await vectorTypeOf(database);
    const embeddings = new EmbeddingJobs({ database, queue: jobQueue, model, vectorType });
    const items = new Items(database, itemQueue);
    const registry = new FunctionRegistry([...functions, ...(await loadFunctions(settings.functionsModule))]);
    const { attemptsMax } = settings;
    const tasks = new Tasks({ database, queue: taskQueue, registry, attemptsMax });
    const ragJobsQueue = ragQueue(settings);
    await prepareQueue(database, ragJobsQueue);
    const rag = new RagJobs({
      queue: await openRagQueue({
        ...settings,
        ...{ database, queue: ragJobsQueue, ragIds: [...settings.rags.keys()], log },
      }),
      rags: settings.rags,
      clock: database.clock,
    });
    const { modelRequestsPerMinute: requests, modelTokensPerMinute: tokens } = settings;
    return new App({
      settings,
      log,
      outages,
      limits: new LimitsByService({ requests, tokens }),
      database,
      queues,
      jobQueue,
      itemQueue,
      items,
      taskQueue,
      registry,
      tasks,
      embeddings,
      rag,
      files,
      workers,
      migrationsApplied: applied.length,
    });
  } catch (error) {
    await database.close();
    throw error;
  }
}

interface AppParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly outages: StoreOutages;
  readonly limits: LimitsByService;
  readonly database: Database;
  readonly queues: DocumentQueues;
  readonly jobQueue: Queue<JobPayload>;
  readonly itemQueue: ItemQueues;
  readonly items: Items;
  readonly taskQueue: Queue<FunctionTaskPayload>;
  readonly registry: FunctionRegistry;
  readonly tasks: Tasks;
  readonly embeddings: EmbeddingJobs;
  readonly rag: RagJobs;
  readonly files: DocumentFiles;
  readonly workers: WorkerProcesses;
  readonly migrationsApplied: number;
}

/** Whoever asked has the answer; what else the lane took up may be given back. */
const ASKED_GRACE_MS = 5_000;

class App implements Quarry {
  readonly settings: Settings;
  readonly migrationsApplied: number;
  readonly documents: Documents;
  readonly embeddings: EmbeddingJobs;
  readonly queue: Items;
  readonly tasks: Tasks;
  readonly rag: RagJobs;
  readonly remote: RemoteWork;
  readonly lanes: LaneControl;
  readonly #app: AppParts;
  readonly #asking: Asking;
  readonly #crews: Crew[] = [];
  readonly #janitors: Janitor[] = [];
  #parts: Promise<OpenedParts> | undefined;

  constructor(app: AppParts) {
    this.#app = app;
    this.settings = app.settings;
    this.migrationsApplied = app.migrationsApplied;
    this.embeddings = app.embeddings;
    this.queue = app.items;
    this.tasks = app.tasks;
    this.rag = app.rag;
    this.remote = remoteWork(app);
    this.documents = new Documents(this.#documentsParts);
    this.lanes = laneControl(app);
    this.#asking = openAsking({
      ...app,
      search: this.search,
      index: () => this.#openParts(),
      workers: () => this.workers(),
      work: async () => {
        const crew = await this.work({ lanes: [app.taskQueue.name], graceMs: ASKED_GRACE_MS });
        // Whoever asks stops it: there may be thousands of questions.
        this.#crews.splice(this.#crews.indexOf(crew), 1);
        return crew;
      },
    });
  }

  readonly search: Search = {
    search: async (query, signal) => openSearch(await this.#openParts()).search(query, signal),
  };

  get asks(): Asks {
    return this.#asking.asks;
  }

  ask(question: string, options?: AskOptions): Promise<Asked> {
    return this.#asking.ask(question, options);
  }

  ingest(paths: readonly string[], options?: IngestOptions): Promise<Ingested> {
    return ingest({ items: this.queue, machine: this.settings.machine }, paths, options);
  }

  async work(options: WorkOptions = {}): Promise<Crew> {
    if (!this.settings.isEnabled) {
      throw new QuarryError(
        "invalid_input",
        "TASK_QUEUE_ENABLED is false, so no lane is started; set it to true to work",
      );
    }
    const wanted = options.lanes?.map((lane) => checkedLane(lane, this.lanes.names));
    await this.#refuseOtherFiles();
    const lanes = await this.#allLanes();
    const missing = wanted?.find((name) => !lanes.some(({ queue }) => queue.name === name));
    if (missing !== undefined) {
      throw new QuarryError(
        "invalid_input",
        `lane ${missing} cannot run here: QUARRY_EMBEDDING_MODEL is ${this.embeddings.model}, which QUARRY_EMBEDDER=${this.settings.embedder} does not make`,
      );
    }
    const crew = new Crew({
      ...this.settings,
      ...this.#app,
      lanes: lanes.filter(({ queue }) => wanted?.includes(queue.name) ?? true),
      // Also what workers elsewhere take from.
      ...(!wanted && { tended: this.#tended() }),
      ...(options.graceMs !== undefined && { graceMs: options.graceMs }),
    });
    this.#crews.push(crew);
    return crew.start();
  }

  async #refuseOtherFiles(): Promise<void> {
    await this.#app.files.verified().catch((error) => {
      if (!isQuarryError(error, "store_unavailable")) throw error;
      this.#app.log.warn({ error: messageOf(error) }, "the files' store is away: what needs it waits");
    });
  }

  async #allLanes(): Promise<LaneDeclaration<object>[]> {
    const { documentLanes } = await import("./documents/lanes.ts");
    const { database, jobQueue } = this.#app;
    const { embeddingBatch, embeddingBatchTokens, pollMs } = this.settings;
    const parts = await this.#openParts();
    const { taskQueue, registry, tasks } = this.#app;
    const agents = agentLane({ ...this.settings, queue: taskQueue, registry, tasks });
    const lanes = [...this.#itemLanes(), ...documentLanes(parts), agents];
    // Otherwise the vectors are made elsewhere, by workers that take the jobs over HTTP.
    if (parts.embedder.model === this.embeddings.model) {
      const limits = { textsMax: embeddingBatch, tokensMax: embeddingBatchTokens };
      const { embedder } = parts;
      const queue = jobQueue;
      lanes.push(embeddingLane({ database, queue, embedder, limits, version: VERSION, pollMs }));
    }
    checkChunking(this.settings.rags, parts.embedder.tokensMax);
    return [...lanes, ...this.#ragLanes()];
  }

  /** A worker that knows no RAG takes no jobs: others may know theirs. */
  #ragLanes(): LaneDeclaration<object>[] {
    const { database, rag, log } = this.#app;
    if (rag.rags.size === 0) return [];
    const { pollMs } = this.settings;
    const { documents } = this;
    const { fileBytesMax } = this.#documentsParts;
    const searchable = new SearchableDocuments(database);
    const { queue, rags } = rag;
    const { clock } = database;
    return [ragLane({ database, documents, searchable, queue, rags, fileBytesMax, clock, log, pollMs })];
  }

  #tended(): Tended[] {
    const { taskQueue, tasks } = this.#app;
    const tables = queuesOf(this.#app).filter(({ name }) => name !== taskQueue.name);
    return [...tables, tasks.store as LaneStore<object>, ...this.#ragLanes().map(({ store }) => store!)];
  }

  #itemLanes(): LaneDeclaration<object>[] {
    const { database, items, itemQueue } = this.#app;
    const { pollMs, isFetching, fileMbMax, machine } = this.settings;
    const folder = resolve(this.settings.dataFolder);
    return itemLanes({
      ...{ database, items, queues: itemQueue, pollMs, documents: this.documents, machine },
      searchable: new SearchableDocuments(database),
      temporaryFolder: join(folder, "incoming"),
      except: [folder],
      library: { isFetched: isFetching, bytesMax: fileMbMax * 1_048_576 },
    });
  }

  async reindex(): Promise<number> {
    const here = this.#crews.map(({ lanes }) => ({ lanes, host: "this process", pid: null }));
    refuseWorkers([...(await this.workers()), ...here], "have the index open");
    const { clearIndex } = await import("./parts.ts");
    await clearIndex(this.settings, this.#app);
    let documents = 0;
    for (let after: string | undefined; ; ) {
      const page = await this.documents.list({ limit: 500, after });
      for (const { id } of page.documents) {
        await this.documents.redo(id, "vector");
        documents++;
      }
      if (page.next === undefined) return documents;
      after = page.next;
    }
  }

  async migrateLegacy(fromUrl?: string, options?: LegacyQueuesOptions): Promise<LegacySystemReport> {
    if (fromUrl === undefined) return this.#migrateLegacy(this.#app.database, "", options);
    const from = openDatabase(fromUrl);
    return this.#migrateLegacy(from, hideSecrets(fromUrl), options).finally(() => from.close());
  }

  async #migrateLegacy(from: Database, name: string, options?: LegacyQueuesOptions) {
    const { database, itemQueue } = this.#app;
    const source = await openLegacySource(from, name);
    const hasQueues = source.tables.length > 0 || (await droppedTables(database, name)).length > 0;
    const columns = await columnsOf(from, "documents");
    const hasDocuments = columns.has("convert_status") || columns.has("index_status");
    // Where there is neither, the migration of documents says what it looked for.
    const documents =
      hasDocuments || !hasQueues
        ? await migrateLegacy(this.#documentsParts, from)
        : { documents: 0, pages: 0, chunks: 0, alreadyThere: 0 };
    const queues = await migrateQueues({ database, queues: itemQueue, source }, options);
    return { ...documents, queues };
  }

  workers(states?: readonly WorkerState[]): Promise<WorkerProcess[]> {
    return this.#app.workers.list(states);
  }

  tend(): Janitor {
    const { database, log, outages } = this.#app;
    const janitor = createJanitor({
      database,
      queues: this.#tended(),
      everyMs: this.settings.checkEveryMs,
      log,
      outages,
    });
    this.#janitors.push(janitor.start());
    return janitor;
  }

  changes(options: { since?: string | undefined; signal: AbortSignal }): AsyncGenerator<Changes> {
    return followChanges(this.#app.database, options);
  }

  counts(): Promise<QueueCounts[]> {
    const { database } = this.#app;
    return Promise.all(
      [...queuesOf(this.#app), ...ragQueuesOf(this.#app)].map(async (queue) => {
        const counts = await openQueue(database, queue).countByStatus();
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
    for (const janitor of this.#janitors.splice(0)) await janitor.stop();
    await this.#asking.close();
    await (await this.#parts?.catch(() => undefined))?.close();
    await this.#app.rag.queue.close();
    await this.#app.files.close();
    await this.#app.database.close();
  }

  get #documentsParts() {
    const { attemptsMax, fileMbMax, machine } = this.settings;
    return { ...this.#app, attemptsMax, machine, fileBytesMax: fileMbMax * 1_048_576 };
  }

  /** Loaded when needed: most commands only look at rows. */
  #openParts(): Promise<OpenedParts> {
    this.#parts ??= import("./parts.ts").then(({ openParts }) => openParts(this.settings, this.#app));
    return this.#parts;
  }
}

/** One for each table and phase: `items.oldest` and `pages.scan` take rows of these, in another order or behind another gate. */
function queuesOf({ queues, jobQueue, itemQueue, taskQueue }: AppParts): Queue[] {
  const { pageScan: _sameRows, ...others } = queues;
  return [itemQueue.items, ...Object.values(others), jobQueue, taskQueue] as Queue<object>[];
}

/** None where no RAG is configured. */
function ragQueuesOf({ rag }: AppParts): Queue[] {
  return rag.rags.size > 0 ? [rag.queue.store.queue as Queue<object> as Queue] : [];
}

function remoteWork({ database, workers, jobQueue, settings }: AppParts): RemoteWork {
  const queues = [remoteEmbeddings({ database, queue: jobQueue })];
  return new RemoteWork({ database, workers, queues, pollMs: settings.pollMs });
}

function laneControl(app: AppParts): LaneControl {
  const { database } = app;
  const names = [...queuesOf(app), app.itemQueue.oldest, app.queues.pageScan, ...ragQueuesOf(app)].map(
    ({ name }) => name,
  );
  const pauses = new Pauses(database);
  return {
    names,
    paused: () => pauses.list(),
    pause: async (lane) => pauses.pause(checkedLane(lane, names)),
    resume: async (lane) => pauses.resume(checkedLane(lane, names)),
  };
}

const WORKERS_NAMED_MAX = 5;

function refuseWorkers(workers: readonly Pick<WorkerProcess, "lanes" | "host" | "pid">[], why: string): void {
  const working = workers.filter(({ lanes }) => lanes.length > 0);
  if (working.length === 0) return;
  const named = working
    .slice(0, WORKERS_NAMED_MAX)
    .map(({ host, pid }) => (pid === null ? host : `${host}, process ${pid}`));
  const more = working.length - named.length;
  throw new QuarryError(
    "constraint_violated",
    `workers ${why}: stop them first (${named.join("; ")}${more > 0 ? `; and ${more} more` : ""})`,
  );
}
