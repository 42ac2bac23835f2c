import type { Database } from "../database/database.ts";
import { messageOf } from "../errors.ts";
import { type Log, silentLog } from "../log.ts";
import { createJanitor, type Janitor, openTended, type Tended } from "./janitor.ts";
import type { LaneDeclaration } from "./lane.ts";
import type { StoreOutages } from "./outage.ts";
import { PAUSE_TOPIC, Pauses } from "./pauses.ts";
import { createWorker, type Worker } from "./worker.ts";
import { WorkerProcesses } from "./worker-processes.ts";

export interface CrewSettings {
  readonly database: Database;
  readonly lanes: readonly LaneDeclaration<object>[];
  /** Queues the janitor looks after; those of the lanes, unless said. */
  readonly tended?: readonly Tended[];
  readonly heartbeatMs: number;
  /** How often the janitor goes round. */
  readonly checkEveryMs: number;
  readonly staleMs: number;
  /** What the machine is called among those at work; as its host, unless said. */
  readonly machine?: string | undefined;
  readonly pollMs: number;
  readonly graceMs?: number;
  readonly log?: Log;
  readonly outages?: StoreOutages;
}

/** Lanes begin and end to wait together, and maybe in turns: it is reported once for all. */
const REPORT_AFTER_MS = 500;

/** Everything one process runs: lanes, a janitor, its entry among the processes, and an eye on paused lanes. */
export class Crew {
  readonly worker: Worker;
  readonly #settings: CrewSettings;
  readonly #janitor: Janitor;
  readonly #pauses: Pauses;
  readonly #processes: WorkerProcesses;
  readonly #names: readonly string[];
  readonly #tended: readonly Tended[];
  readonly #log: Log;
  #timers: NodeJS.Timeout[] = [];
  #report: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #stopped: Promise<void> | undefined;

  constructor(settings: CrewSettings) {
    const { database, lanes, heartbeatMs } = settings;
    this.#log = settings.log ?? silentLog;
    this.#settings = settings;
    this.#names = lanes.map(({ queue }) => queue.name);
    this.#tended = settings.tended ?? lanes.map(({ queue, store }) => store ?? queue);
    this.worker = createWorker({
      database,
      lanes,
      heartbeatMs,
      log: this.#log,
      ...(settings.outages && { outages: settings.outages }),
      onWait: () => {
        this.#report ??= setTimeout(() => void this.#beat(), REPORT_AFTER_MS).unref();
      },
      ...(settings.graceMs !== undefined && { graceMs: settings.graceMs }),
    });
    this.#janitor = createJanitor({
      database,
      queues: this.#tended,
      everyMs: settings.checkEveryMs,
      log: this.#log,
      ...(settings.outages && { outages: settings.outages }),
    });
    this.#pauses = new Pauses(database);
    this.#processes = new WorkerProcesses(database, {
      silentMs: settings.staleMs,
      host: settings.machine,
    });
  }

  /** Names of the lanes it runs. */
  get lanes(): readonly string[] {
    return this.#names;
  }

  async start(): Promise<this> {
    await this.#processes.beat(this.worker.id, this.#names);
    await this.#takeFromGone();
    // Before the first claim, so that a paused lane takes nothing.
    await this.#heed();
    this.worker.start();
    this.#janitor.start();
    this.#unsubscribe = this.#settings.database.subscribe(PAUSE_TOPIC, () => void this.#heed());
    this.#timers = [
      setInterval(() => void this.#beat(), this.#settings.heartbeatMs),
      setInterval(() => void this.#heed(), this.#settings.pollMs),
    ];
    return this;
  }

  /** Lets what runs finish, gives back the rest. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#report);
    this.#unsubscribe?.();
    await Promise.all([this.worker.stop(), this.#janitor.stop()]);
    await this.#processes.leave(this.worker.id).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    this.#report = undefined;
    try {
      await this.#processes.beat(this.worker.id, this.#names, this.worker.waits);
      if (await this.#takeFromGone()) await this.#janitor.sweep();
    } catch (error) {
      this.#log.debug({ error: messageOf(error) }, "the process could not report");
    }
  }

  /** Rows of processes that were killed need not wait for their leases to run out. */
  async #takeFromGone(): Promise<boolean> {
    const gone = await this.#processes.gone();
    let taken = 0;
    for (const tended of this.#tended) {
      // What is kept elsewhere may be away while the database is not.
      taken += await openTended(this.#settings.database, tended)
        .expireLeases(gone)
        .catch((error) => {
          this.#log.debug({ error: messageOf(error) }, "leases of gone workers could not be ended");
          return 0;
        });
    }
    return taken > 0;
  }

  async #heed(): Promise<void> {
    try {
      const paused = await this.#pauses.list();
      for (const name of this.#names) {
        const lane = this.worker.lane(name);
        if (paused.has(name)) await lane.pause();
        else lane.resume();
      }
    } catch (error) {
      this.#log.debug({ error: messageOf(error) }, "paused lanes could not be read");
    }
  }
}
