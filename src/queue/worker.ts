import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { workerId } from "../ids.ts";
import { type Log, silentLog } from "../log.ts";
import { observed, type Telemetry } from "../telemetry.ts";
import { Lane, type LaneDeclaration, type LaneStats } from "./lane.ts";
import type { LaneWait } from "./lane-wait.ts";
import { StoreOutages } from "./outage.ts";
import { openQueue } from "./store.ts";

export interface WorkerSettings {
  readonly database: Database;
  readonly lanes: readonly LaneDeclaration<object>[];
  /** Random per start; give one only to make it readable, never the same twice. */
  readonly id?: string;
  /** How often leases are renewed; a third of the shortest lease unless said. */
  readonly heartbeatMs?: number;
  /** How long running handlers may take to finish when the worker stops. */
  readonly graceMs?: number;
  readonly log?: Log;
  readonly telemetry?: Telemetry;
  /** Those of the process; its own, unless said. */
  readonly outages?: StoreOutages;
  /** A lane begins to wait for what is away, or goes on. */
  readonly onWait?: () => void;
}

const GRACE_DEFAULT_MS = 30_000;

/** Runs lanes in this process. */
export class Worker {
  readonly id: string;
  readonly #lanes: readonly Lane[];
  readonly #heartbeatMs: number;
  readonly #graceMs: number;
  readonly #log: Log;
  #heartbeat: NodeJS.Timeout | undefined;
  #isBeating = false;
  #stopped: Promise<void> | undefined;
  readonly #killed = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();

  constructor(settings: WorkerSettings) {
    if (settings.lanes.length === 0)
      throw new QuarryError("invalid_declaration", "a worker needs at least one lane");
    this.id = settings.id ?? workerId();
    this.#log = settings.log ?? silentLog;
    this.#graceMs = settings.graceMs ?? GRACE_DEFAULT_MS;
    const leases = settings.lanes.map((lane) => lane.queue.lease.ms);
    this.#heartbeatMs = settings.heartbeatMs ?? Math.floor(Math.min(...leases) / 3);
    const { outages = new StoreOutages({ log: this.#log, clock: settings.database.clock }) } = settings;
    const onWait = settings.onWait ?? (() => undefined);
    this.#lanes = settings.lanes.map((declaration) => {
      const store = observed(declaration.store ?? openQueue(settings.database, declaration.queue), {
        prefix: "quarry.store",
        attributes: { "quarry.queue": declaration.queue.name },
        telemetry: settings.telemetry,
      });
      return new Lane(declaration, {
        worker: this.id,
        store,
        clock: store.clock,
        log: this.#log,
        telemetry: settings.telemetry,
        outages,
        onWait,
      });
    });
  }

  get stats(): Readonly<Record<string, LaneStats>> {
    return Object.fromEntries(this.#lanes.map((lane) => [lane.queue.name, lane.stats]));
  }

  /** Lanes whose tasks need something that is away. */
  get waits(): LaneWait[] {
    return this.#lanes.map(({ wait }) => wait).filter((wait) => wait !== undefined);
  }

  start(): this {
    this.#heartbeat = setInterval(() => void this.#beat(), this.#heartbeatMs);
    for (const lane of this.#lanes) lane.start();
    this.#log.info({ worker: this.id, lanes: this.#lanes.map((lane) => lane.queue.name) }, "worker started");
    return this;
  }

  lane(name: string): Pick<Lane, "pause" | "resume" | "stats"> {
    const lane = this.#lanes.find(({ queue }) => queue.name === name);
    if (!lane) throw new QuarryError("not_found", `this worker has no lane ${name}`);
    return lane;
  }

  /** Lets what runs finish, gives back the rest, and resolves when nothing is held any more. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Stops without waiting for what runs; it is given back and costs no attempt. */
  hurry(): Promise<void> {
    const stopped = this.stop();
    for (const lane of this.#lanes) lane.hurry();
    return stopped;
  }

  /** Stops at once. Leases of what was running run out and cost an attempt. */
  kill(): void {
    clearInterval(this.#heartbeat);
    for (const lane of this.#lanes) lane.kill();
    this.#killed.resolve();
    this.#ended.resolve();
  }

  /** The first SIGTERM or SIGINT stops, the second does not wait, the third kills. Resolves when the worker has stopped. */
  async untilSignal(): Promise<void> {
    const answers = [() => void this.stop(), () => void this.hurry(), () => this.kill()];
    let signals = 0;
    const onSignal = () => answers[Math.min(signals++, answers.length - 1)]!();
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.#ended.promise;
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
  }

  async #stop(): Promise<void> {
    await Promise.race([
      Promise.all(this.#lanes.map((lane) => lane.stop(this.#graceMs))),
      this.#killed.promise,
    ]);
    clearInterval(this.#heartbeat);
    this.#ended.resolve();
    this.#log.info({ worker: this.id }, "worker stopped");
  }

  /** One statement a queue, however many rows are held. A slow one is not overtaken by the next. */
  async #beat(): Promise<void> {
    if (this.#isBeating) {
      for (const lane of this.#lanes) lane.dropExpired();
      return;
    }
    this.#isBeating = true;
    await Promise.allSettled(this.#lanes.map((lane) => lane.beat()));
    this.#isBeating = false;
  }
}

export function createWorker(settings: WorkerSettings): Worker {
  return new Worker(settings);
}
