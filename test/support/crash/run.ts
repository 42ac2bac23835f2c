import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createJanitor,
  type Database,
  openDatabase,
  openQueue,
  type QueueStore,
  type Row,
} from "../../../src/index.ts";
import { asAdmin, checkConnections, checkDatabase, findProblems, readAll, trailOf } from "./evidence.ts";
import { POLL_MS, STALLED_MS, steadily } from "./patience.ts";
import { Fleet, type WorkerProcess } from "./processes.ts";
import { createCrashTables } from "./tables.ts";
import { type CrashTask, LEASE_MS, tasks as queue } from "./worker.ts";

export interface CrashOptions {
  readonly url: string;
  /** At least this many; more when they run out before the faults do. */
  readonly tasks: number;
  readonly workers?: number;
  /** SIGKILLs that leave rows behind. */
  readonly kills?: number;
  /** SIGSTOPs that last until the rows were taken away. */
  readonly stops?: number;
  /** pg_terminate_backend of random connections, the harness's own included. */
  readonly terminations?: number;
  readonly restarts?: number;
  readonly restart?: () => Promise<void>;
  /** How long a handler takes, at random between these. */
  readonly sleepMs?: { readonly min: number; readonly max: number };
}

export interface CrashFigures {
  readonly tasks: number;
  readonly claims: number;
  readonly rescued: number;
  /** Outcomes that came too late and were not written. */
  readonly refused: number;
  readonly kills: number;
  /** Kills that came between two claims; they are not counted in `kills`. */
  readonly killsOfIdle: number;
  readonly stops: number;
  /** Stops in the middle of a transaction: its locks kept the rows from being taken away. Not counted in `stops`. */
  readonly stopsWithLocks: number;
  readonly terminations: number;
  readonly restarts: number;
  readonly processes: number;
  readonly durationMs: number;
  /** From the last fault to the last row. */
  readonly drainMs: number;
}

type Fault = "kill" | "stop" | "terminate" | "restart";

export const WORKERS = 4;
const CONCURRENCY = 4;
const JANITOR_EVERY_MS = 200;
/** A process that was stopped inside a transaction keeps its rows locked, and is woken without having lost them. */
const STOP_MAX_MS = 3 * LEASE_MS;
const PROBLEMS_SHOWN_MAX = 10;

/**
 * Drains a queue with real processes while they are killed, stopped and cut off from the database, and then holds
 * the rows against a log that triggers kept inside the database: nothing lost, nothing twice, every attempt counted.
 */
export async function runCrash(options: CrashOptions): Promise<CrashFigures> {
  const database = openDatabase(options.url);
  let figures: CrashFigures;
  try {
    await createCrashTables(database);
    figures = await new CrashRun(options, database).drain();
    await checkDatabase(database);
  } finally {
    await database.close();
  }
  if (database.dialect.name === "postgres") await checkConnections(options.url);
  return figures;
}

class CrashRun {
  readonly #options: CrashOptions;
  readonly #database: Database;
  readonly #store: QueueStore<CrashTask>;
  readonly #fleet: Fleet;
  readonly #zombies = new Set<Promise<void>>();
  readonly #faults: Fault[];
  readonly #chunk: number;
  #enqueued = 0;
  #progress = { finished: 0, at: performance.now() };
  #counts = { kill: 0, stop: 0, terminate: 0, restart: 0 } satisfies Record<Fault, number>;
  #killsOfIdle = 0;
  #stopsWithLocks = 0;

  constructor(options: CrashOptions, database: Database) {
    this.#options = options;
    this.#database = database;
    this.#store = openQueue(database, queue);
    this.#faults = spread({
      kill: options.kills ?? 0,
      stop: options.stops ?? 0,
      terminate: options.terminations ?? 0,
      restart: options.restarts ?? 0,
    });
    this.#chunk = Math.ceil(options.tasks / (this.#faults.length + 1));
    this.#fleet = new Fleet(options.url, options.workers ?? WORKERS);
  }

  async drain(): Promise<CrashFigures> {
    const startedAt = performance.now();
    const janitor = createJanitor({
      database: this.#database,
      queues: [queue],
      everyMs: JANITOR_EVERY_MS,
    }).start();
    try {
      await this.#enqueue();
      for (const fault of this.#faults) {
        await this.#untilMostIsDone();
        await this.#strike(fault);
        await this.#enqueue();
      }
      await Promise.all(this.#zombies);
      // A stop counts once its rows were taken away, which is known only now.
      while (this.#counts.stop < (this.#options.stops ?? 0)) {
        await this.#strike("stop");
        await Promise.all(this.#zombies);
      }
      const lastFaultAt = performance.now();
      await this.#until((counts) => this.#enqueued === counts.finished);
      const drainedAt = performance.now();
      this.#checkSurvivors();
      await this.#fleet.stop();
      await janitor.stop();
      const { claims, rescued } = await this.#checkRows();
      return {
        tasks: this.#enqueued,
        claims,
        rescued,
        refused: this.#fleet.refused,
        kills: this.#counts.kill,
        killsOfIdle: this.#killsOfIdle,
        stops: this.#counts.stop,
        stopsWithLocks: this.#stopsWithLocks,
        terminations: this.#counts.terminate,
        restarts: this.#counts.restart,
        processes: this.#fleet.all.length,
        durationMs: Math.round(drainedAt - startedAt),
        drainMs: Math.round(drainedAt - lastFaultAt),
      };
    } finally {
      await this.#fleet.end();
      await Promise.allSettled(this.#zombies);
      await janitor.stop();
    }
  }

  /** Rows come in with the faults, so that there is work for each of them however fast the machine is. */
  async #enqueue(): Promise<void> {
    const { min, max } = this.#options.sleepMs ?? { min: 5, max: 150 };
    const rows = Array.from({ length: this.#chunk }, (_unused, index) => ({
      n: this.#enqueued + index + 1,
      sleep_ms: Math.round(min + Math.random() * (max - min)),
    }));
    await steadily(() => this.#store.enqueue(rows));
    this.#enqueued += rows.length;
  }

  /** Faults follow the progress of the work: the next comes when not much more than its own rows is left. */
  async #untilMostIsDone(): Promise<void> {
    const backlogMax = Math.max(2 * this.#chunk, 2 * WORKERS * CONCURRENCY);
    await this.#until((counts) => this.#enqueued - counts.finished <= backlogMax);
  }

  async #strike(fault: Fault): Promise<void> {
    switch (fault) {
      case "kill":
        return this.#kill();
      case "stop":
        return this.#stop();
      case "terminate":
        return this.#terminate();
      case "restart":
        await this.#holder();
        await this.#options.restart!();
        this.#counts.restart++;
        return;
      default:
        return fault satisfies never;
    }
  }

  async #kill(): Promise<void> {
    let left = 0;
    while (left === 0) {
      const victim = await this.#holder();
      await sleep(Math.random() * 50);
      victim.mayExit = true;
      victim.kill("SIGKILL");
      await victim.exited;
      left = (await this.#heldBy(victim)).length;
      if (left === 0) this.#killsOfIdle++;
    }
    this.#counts.kill++;
  }

  async #stop(): Promise<void> {
    const victim = await this.#holder();
    victim.isStopped = true;
    victim.kill("SIGSTOP");
    // Once in a run all others wait for a lock whose holder sleeps; more often would only take time.
    if (this.#stopsWithLocks > 0 && this.#isLocked()) {
      this.#stopsWithLocks++;
      victim.kill("SIGCONT");
      victim.isStopped = false;
      return;
    }
    const zombie = this.#wakeWhenLost(victim).finally(() => this.#zombies.delete(zombie));
    this.#zombies.add(zombie);
    // Its failure is seen where all of them are awaited.
    zombie.catch(() => undefined);
  }

  /** SQLite has one lock for all writers. */
  #isLocked(): boolean {
    if (this.#database.dialect.name !== "sqlite") return false;
    const connection = new DatabaseSync(this.#options.url, { timeout: 100 });
    try {
      connection.exec("begin immediate");
      return false;
    } catch {
      return true;
    } finally {
      connection.close();
    }
  }

  async #wakeWhenLost(victim: WorkerProcess): Promise<void> {
    const giveUpAt = performance.now() + STOP_MAX_MS;
    const held = await this.#heldBy(victim);
    let left = held;
    while (left.length > 0 && performance.now() < giveUpAt) {
      await sleep(POLL_MS);
      left = await this.#heldBy(victim);
    }
    victim.kill("SIGCONT");
    if (held.length > left.length) this.#counts.stop++;
    else if (held.length > 0) this.#stopsWithLocks++;
    // It is left alone until it has tried to write down what it believes to hold.
    await sleep(LEASE_MS / 2);
    victim.isStopped = false;
  }

  async #terminate(): Promise<void> {
    // More often in the middle of a statement than chance would have it.
    const sql = `
      select pg_terminate_backend(pid) as is_hit from pg_stat_activity
      where application_name in ('quarry', 'quarry listen') and datname = current_database()
      order by random() + (state <> 'idle')::int * 0.5 desc limit 1`;
    let rows: Row[] = [];
    while (!rows[0]?.is_hit) {
      await this.#holder();
      await sleep(Math.random() * 50);
      rows = await asAdmin(this.#options.url, sql);
    }
    this.#counts.terminate++;
  }

  /** A running process that holds rows, at random. */
  async #holder(): Promise<WorkerProcess> {
    const candidates: WorkerProcess[] = [];
    await this.#until(async (counts) => {
      if (counts.finished === this.#enqueued) await this.#enqueue();
      const sql = "select distinct worker_id from tasks where status = 'processing'";
      const holders = new Set((await steadily(() => this.#database.query(sql))).map((row) => row.worker_id));
      candidates.push(
        ...this.#fleet.living.filter(
          (worker) => worker.isStarted && !worker.isStopped && holders.has(worker.label),
        ),
      );
      return candidates.length > 0;
    });
    return candidates[Math.floor(Math.random() * candidates.length)]!;
  }

  #heldBy({ label }: WorkerProcess): Promise<Row[]> {
    const sql = `select id, token from tasks where status = 'processing' and worker_id = '${label}'`;
    return steadily(() => this.#database.query(sql));
  }

  /** Fails when a process ended by itself, or when nothing gets finished any more. */
  async #until(isReached: (counts: { finished: number }) => boolean | Promise<boolean>): Promise<void> {
    this.#progress.at = performance.now();
    for (;;) {
      const [casualty] = this.#fleet.casualties;
      if (casualty !== undefined) assert.fail(casualty);
      const finished = await this.#finished();
      if (await isReached({ finished })) return;
      if (finished > this.#progress.finished) this.#progress = { finished, at: performance.now() };
      if (performance.now() - this.#progress.at > STALLED_MS) await this.#failAsStalled(finished);
      await sleep(POLL_MS);
    }
  }

  async #finished(): Promise<number> {
    const sql = "select count(*) as finished from tasks where status in ('completed', 'failed')";
    const [row] = await steadily(() => this.#database.query(sql));
    return Number(row!.finished);
  }

  async #failAsStalled(finished: number): Promise<never> {
    const { audit } = await readAll(this.#database);
    const stuck = await this.#database.query("select * from tasks where status <> 'completed' order by id");
    const shown = stuck
      .slice(0, PROBLEMS_SHOWN_MAX)
      .map((row) => `${JSON.stringify(row)}\n${trailOf(row.id, audit)}`);
    const words = this.#fleet.living.map(
      (worker) => `${worker.label}${worker.isStopped ? " (stopped)" : ""}: ${worker.lastWords}`,
    );
    const head = `nothing was finished for ${STALLED_MS} ms: ${finished} of ${this.#enqueued} are`;
    return assert.fail([head, ...shown, ...words].join("\n"));
  }

  /** Cut off from the database, a process carries on by itself; only a kill may end it. */
  #checkSurvivors(): void {
    const started = (this.#options.workers ?? WORKERS) + this.#counts.kill + this.#killsOfIdle;
    assert.deepEqual(this.#fleet.casualties, []);
    assert.equal(this.#fleet.all.length, started, "a worker was replaced that nobody had killed");
  }

  async #checkRows(): Promise<{ claims: number; rescued: number }> {
    const { rows, audit, effects } = await readAll(this.#database);
    const problems = findProblems({ rows, audit, effects, enqueued: this.#enqueued });
    const recount = new Map<string, number>();
    for (const { status } of rows) recount.set(status, (recount.get(status) ?? 0) + 1);
    assert.deepEqual(await this.#store.countByStatus(), recount);
    assert.equal(
      problems.length,
      0,
      `${problems.length} problems\n${problems.slice(0, PROBLEMS_SHOWN_MAX).join("\n")}`,
    );
    const countOf = (kind: string) => audit.filter((entry) => entry.kind === kind).length;
    return { claims: countOf("claimed"), rescued: countOf("rescued") };
  }
}

/** Each kind evenly over the whole run. */
function spread(counts: Record<Fault, number>): Fault[] {
  return Object.entries(counts)
    .flatMap(([fault, count]) =>
      Array.from({ length: count }, (_unused, index) => ({
        fault: fault as Fault,
        place: (index + 0.5) / count,
      })),
    )
    .toSorted((a, b) => a.place - b.place)
    .map(({ fault }) => fault);
}
