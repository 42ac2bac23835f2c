import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import {
  createJanitor,
  type Database,
  isQuarryError,
  openDatabase,
  openQueue,
  prepareQueue,
  type QueueStore,
  type Row,
} from "../../src/index.ts";
import {
  type CrashTask,
  type CrashWorkerOptions,
  type CrashWorkerReport,
  LEASE_MS,
  tasks as queue,
  writesEffect,
  writesResult,
} from "./crash-worker.ts";
import { freshPostgres } from "./postgres.ts";
import { startServices } from "./services.ts";

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

const WORKERS = 4;
const CONCURRENCY = 4;
const POLL_MS = 20;
const STALLED_MS = 30_000;
const JANITOR_EVERY_MS = 200;
/** A process that was stopped inside a transaction keeps its rows locked, and is woken without having lost them. */
const STOP_MAX_MS = 3 * LEASE_MS;
const EXIT_WITHIN_MS = 15_000;
const PROBLEMS_SHOWN_MAX = 10;

export interface CrashSize {
  readonly tasks: number;
  readonly kills: number;
  readonly stops: number;
  readonly terminations: number;
  readonly restarts: number;
  readonly timeoutMs: number;
}

/** A database of its own for a test, under the name of its kind. */
export const CRASH_DATABASES: Record<string, () => Promise<{ url: string; drop: () => Promise<void> }>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-crash-"));
    return { url: join(folder, "quarry.db"), drop: () => rm(folder, { recursive: true }) };
  },
  PostgreSQL: freshPostgres,
};

export function testCrash({ tasks, kills, stops, terminations, restarts, timeoutMs }: CrashSize): void {
  describe("worker processes that are killed and stopped", () => {
    for (const [name, open] of Object.entries(CRASH_DATABASES)) {
      test(`on ${name}, no task is lost, settled twice or counted wrong`, {
        timeout: timeoutMs,
      }, async (t) => {
        const { url, drop } = await open();
        t.after(drop);
        const figures = await runCrash({ url, tasks, kills, stops });
        t.diagnostic(JSON.stringify(figures));
        assert.equal(figures.kills, kills);
        assert.ok(figures.stops >= stops, `${figures.stops} stops lasted until the rows were taken away`);
        assert.ok(figures.rescued >= kills + stops, `${figures.rescued} rows were rescued`);
        assert.ok(figures.refused >= stops, `${figures.refused} writes of stopped workers were refused`);
      });
    }
  });

  describe("PostgreSQL that comes and goes", () => {
    test("worker processes carry on by themselves", { timeout: timeoutMs }, async (t) => {
      const { url, restart } = await startOwnPostgres(t);
      const figures = await runCrash({ url, tasks, terminations, restarts, restart });
      t.diagnostic(JSON.stringify(figures));
      assert.equal(figures.terminations, terminations);
      assert.equal(figures.restarts, restarts);
      assert.equal(figures.processes, WORKERS, "a process did not survive");
    });
  });
}

/** Not the server of the other test files: this one is restarted under its clients. */
async function startOwnPostgres(t: TestContext): Promise<{ url: string; restart: () => Promise<void> }> {
  const shared = process.env.TEST_DATABASE_URL;
  delete process.env.TEST_DATABASE_URL;
  try {
    const services = await startServices({ redis: false });
    t.after(() => services.stop());
    return { url: services.postgresUrl, restart: () => services.restartPostgres() };
  } finally {
    if (shared !== undefined) process.env.TEST_DATABASE_URL = shared;
  }
}

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

// ---- Tables

/** Every step of a row's life leaves an entry, written by the database in the transaction of the step itself. */
export async function createCrashTables(database: Database): Promise<void> {
  const isPostgres = database.dialect.name === "postgres";
  const time = isPostgres ? "timestamptz" : "text";
  const serial = isPostgres ? "bigserial primary key" : "integer primary key autoincrement";
  const now = isPostgres ? POSTGRES_NOW : `(${SQLITE_NOW})`;
  await database.query(`
    create table tasks (id ${serial}, n integer not null unique, sleep_ms integer not null default 0,
      status text not null default 'pending', token bigint not null default 0, lease_until ${time}, run_after ${time},
      attempts integer not null default 0, attempts_max integer not null default 1000, error text, worker_id text,
      started_at ${time}, finished_at ${time}, result_n integer, result_token bigint)`);
  // Without unique constraints: they would hide the second write instead of showing it.
  await database.query(
    "create table effects (task_id bigint not null, token bigint not null, writer text not null)",
  );
  await database.query(`
    create table audit (seq ${serial}, kind text not null, task_id bigint not null, token bigint not null,
      holder text, writer text, at ${time} not null default ${now})`);
  for (const trigger of isPostgres ? POSTGRES_TRIGGERS : SQLITE_TRIGGERS) await database.query(trigger);
  await prepareQueue(database, queue);
}

const SQLITE_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
const POSTGRES_NOW = "clock_timestamp()";

const kindOf = (now: string) => `case
  when new.status = 'processing' then 'claimed'
  when new.status = 'completed' then 'settled'
  when old.status = 'completed' then 'reopened'
  when old.status <> 'processing' then 'changed'
  when new.token > old.token and old.lease_until > ${now} then 'robbed'
  when new.token > old.token then 'rescued'
  when new.attempts < old.attempts then 'released'
  else 'returned' end`;

const SQLITE_TRIGGERS = [
  `create trigger audit_tasks after update on tasks
   when old.status <> new.status or old.token <> new.token
   begin
     insert into audit (kind, task_id, token, holder)
     values (${kindOf(SQLITE_NOW)}, new.id, new.token, coalesce(new.worker_id, old.worker_id));
   end`,
];

/** SQLite's workers bring the part that knows who writes: see `denounceStaleWrites`. */
const POSTGRES_TRIGGERS = [
  `create function audit_task() returns trigger language plpgsql as $$
   declare
     writer text := nullif(current_setting('quarry.writer', true), '');
   begin
     if old.status = 'processing' and old.worker_id is distinct from coalesce(writer, old.worker_id) then
       insert into audit (kind, task_id, token, holder, writer)
       values ('stale', old.id, old.token, old.worker_id, writer);
     end if;
     if old.status <> new.status or old.token <> new.token then
       insert into audit (kind, task_id, token, holder, writer)
       values (${kindOf(POSTGRES_NOW)}, new.id, new.token, coalesce(new.worker_id, old.worker_id), writer);
     end if;
     return null;
   end $$`,
  "create trigger audit_tasks after update on tasks for each row execute function audit_task()",
];

// ---- Processes

/** A worker in a process of its own, seen from outside. */
export class WorkerProcess {
  readonly label: string;
  readonly started: Promise<void>;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Numbers of the rows whose handlers have begun. */
  readonly began: number[] = [];
  refused = 0;
  isStarted = false;
  isStopped = false;
  /** True once this end was asked for; every other end is a failure. */
  mayExit = false;
  readonly #child: ChildProcess;
  #lastWords = "";

  constructor(options: CrashWorkerOptions) {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    this.label = options.label;
    this.#child = fork(join(import.meta.dirname, "crash-worker.ts"), [JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env,
    });
    this.#child.stderr?.on("data", (text) => {
      this.#lastWords = (this.#lastWords + text).slice(-4_000);
    });
    const started = Promise.withResolvers<void>();
    this.started = started.promise;
    this.#child.on("message", (report: CrashWorkerReport) => {
      switch (report.kind) {
        case "started":
          this.isStarted = true;
          return started.resolve();
        case "began":
          return void this.began.push(report.n);
        case "refused":
          this.refused++;
          return;
        default:
          return report satisfies never;
      }
    });
    // What it said last may still be in the pipe when it exits.
    this.exited = once(this.#child, "close").then(([code, signal]) => ({ code, signal }));
    void this.exited.then(({ code, signal }) =>
      started.reject(
        new Error(`${this.label} ended at its start (code ${code}, ${signal}): ${this.lastWords}`),
      ),
    );
    // Whoever does not wait for the start sees the end.
    this.started.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get lastWords(): string {
    return this.#lastWords;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    this.mayExit = true;
    if (this.isAlive) this.kill("SIGKILL");
    await this.exited;
  }
}

/** Keeps so many workers alive, whatever happens to them. */
class Fleet {
  readonly all: WorkerProcess[] = [];
  /** Processes that ended although nobody ended them. */
  readonly casualties: string[] = [];
  readonly #url: string;
  #isClosing = false;

  constructor(url: string, size: number) {
    this.#url = url;
    for (let i = 0; i < size; i++) this.#spawn();
  }

  get living(): WorkerProcess[] {
    return this.all.filter((worker) => worker.isAlive);
  }

  get refused(): number {
    return this.all.reduce((sum, worker) => sum + worker.refused, 0);
  }

  #spawn(): void {
    const label = `w${this.all.length + 1}`;
    const worker = new WorkerProcess({ url: this.#url, label, concurrency: CONCURRENCY, isDeaf: true });
    this.all.push(worker);
    void worker.exited.then(({ code, signal }) => {
      if (!worker.mayExit) {
        const words = worker.lastWords || "(it said nothing)";
        this.casualties.push(`worker ${label} ended by itself (code ${code}, ${signal}): ${words}`);
      }
      if (!this.#isClosing) this.#spawn();
    });
  }

  /** Asks them to stop, and sees that they do: with exit code 0, and by themselves. */
  async stop(): Promise<void> {
    this.#isClosing = true;
    const { living } = this;
    await Promise.all(living.map((worker) => worker.started));
    for (const worker of living) {
      worker.mayExit = true;
      worker.kill("SIGTERM");
    }
    const late = sleep(EXIT_WITHIN_MS, "late" as const, { ref: false });
    for (const worker of living) {
      const end = await Promise.race([worker.exited, late]);
      assert.notEqual(end, "late", `worker ${worker.label} does not stop: ${worker.lastWords}`);
      assert.deepEqual(end, { code: 0, signal: null }, `worker ${worker.label}: ${worker.lastWords}`);
    }
  }

  async end(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.all.map((worker) => worker.end()));
  }
}

// ---- The run

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

/** Polls, with a bound: what never comes must not keep the test file running after its time limit. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  complaint: () => string,
): Promise<void> {
  const giveUpAt = performance.now() + STALLED_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) assert.fail(complaint());
    await sleep(5);
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

/** The harness asks the same database that the faults hit; it only has to wait until it is back. */
async function steadily<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + STALLED_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isAway = isQuarryError(error, "database_unavailable", "commit_unknown");
      if (!isAway || performance.now() > giveUpAt) throw error;
      await sleep(POLL_MS);
    }
  }
}

// ---- What must be true afterwards

interface Entry {
  readonly seq: number;
  readonly kind:
    | "claimed"
    | "settled"
    | "rescued"
    | "returned"
    | "released"
    | "reopened"
    | "robbed"
    | "changed"
    | "stale";
  readonly task_id: number;
  readonly token: number;
  readonly holder: string | null;
  readonly writer: string | null;
  readonly at: string;
}

interface TaskRow extends Row {
  readonly id: number;
  readonly n: number;
  readonly status: string;
  readonly token: number;
  readonly attempts: number;
  readonly lease_until: string | null;
  readonly result_n: number | null;
  readonly result_token: number | null;
}

interface Effect {
  readonly task_id: number;
  readonly token: number;
  readonly writer: string;
}

interface Evidence {
  readonly rows: readonly TaskRow[];
  readonly audit: readonly Entry[];
  readonly effects: readonly Effect[];
  readonly enqueued: number;
}

async function readAll(database: Database): Promise<Omit<Evidence, "enqueued">> {
  const read = (sql: string) => steadily(() => database.query(sql));
  return {
    rows: (await read("select * from tasks order by n")) as unknown as TaskRow[],
    audit: (await read("select * from audit order by seq")) as unknown as Entry[],
    effects: (await read("select * from effects")) as unknown as Effect[],
  };
}

/** One text for each broken promise, with everything that happened to the row. */
export function findProblems({ rows, audit, effects, enqueued }: Evidence): string[] {
  const problems: string[] = [];
  const trails = Map.groupBy(audit, (entry) => entry.task_id);
  const effectsOf = Map.groupBy(effects, (effect) => effect.task_id);
  const numbers = new Set(rows.map((row) => row.n));
  for (let n = 1; n <= enqueued; n++) if (!numbers.has(n)) problems.push(`task n=${n} is gone`);
  if (rows.length !== enqueued) problems.push(`${enqueued} tasks were enqueued, ${rows.length} are there`);
  for (const row of rows) {
    const trail = trails.get(row.id) ?? [];
    const found = [
      ...problemsOfTrail(trail),
      ...problemsOfRow(row, trail),
      ...problemsOfEffects(row, effectsOf.get(row.id) ?? []),
    ];
    for (const problem of found)
      problems.push(`task ${row.id} (n=${row.n}): ${problem}\n${trailOf(row.id, audit)}`);
  }
  return problems;
}

function problemsOfTrail(trail: readonly Entry[]): string[] {
  const problems: string[] = [];
  let held: Entry | undefined;
  let newest = 0;
  for (const entry of trail) {
    const { kind, token, seq } = entry;
    switch (kind) {
      case "claimed":
        if (held) problems.push(`${seq}: claimed while token ${held.token} of ${held.holder} still held it`);
        if (token <= newest) problems.push(`${seq}: token ${token} after ${newest}`);
        held = entry;
        break;
      case "settled":
        if (!held) problems.push(`${seq}: settled while nobody held it`);
        else if (token !== held.token) problems.push(`${seq}: settled as ${token}, held as ${held.token}`);
        held = undefined;
        break;
      case "rescued":
      case "returned":
        if (!held) problems.push(`${seq}: ${kind} while nobody held it`);
        held = undefined;
        break;
      case "released":
        problems.push(`${seq}: given back although no worker was asked to stop`);
        held = undefined;
        break;
      case "robbed":
        problems.push(`${seq}: taken from ${held?.holder} before its lease was over`);
        held = undefined;
        break;
      case "stale":
        problems.push(`${seq}: ${entry.writer} wrote to a row that ${entry.holder} held`);
        break;
      case "reopened":
      case "changed":
        problems.push(`${seq}: ${kind} without being asked for`);
        break;
      default:
        kind satisfies never;
    }
    newest = Math.max(newest, token);
  }
  return problems;
}

function problemsOfRow(row: TaskRow, trail: readonly Entry[]): string[] {
  const problems: string[] = [];
  const settled = trail.filter((entry) => entry.kind === "settled").length;
  const claims = trail.filter((entry) => entry.kind === "claimed").length;
  if (row.status !== "completed") problems.push(`is ${row.status}`);
  if (row.lease_until !== null) problems.push(`still has a lease until ${row.lease_until}`);
  if (settled !== 1) problems.push(`was settled ${settled} times`);
  if (row.attempts !== claims)
    problems.push(`counts ${row.attempts} attempts and was claimed ${claims} times`);
  const expected = writesResult(row.n) ? [2 * row.n, row.token] : [null, null];
  const result = [row.result_n, row.result_token];
  if (result[0] !== expected[0] || result[1] !== expected[1])
    problems.push(`has result ${result}, not ${expected}`);
  return problems;
}

function problemsOfEffects(row: TaskRow, effects: readonly Effect[]): string[] {
  const expected = writesEffect(row.n) ? 1 : 0;
  if (effects.length !== expected) return [`has ${effects.length} effects, not ${expected}`];
  return effects
    .filter((effect) => effect.token !== row.token)
    .map((effect) => `its effect was written with token ${effect.token} by ${effect.writer}`);
}

function trailOf(id: unknown, audit: readonly Entry[]): string {
  return audit
    .filter((entry) => entry.task_id === id)
    .map(
      ({ seq, kind, token, holder, writer, at }) =>
        `  ${seq} ${at} ${kind} token ${token} holder ${holder} writer ${writer}`,
    )
    .join("\n");
}

async function checkDatabase(database: Database): Promise<void> {
  if (database.dialect.name !== "sqlite") return;
  assert.deepEqual(
    (await database.query("pragma integrity_check")).map((row) => ({ ...row })),
    [{ integrity_check: "ok" }],
  );
}

/** However their processes ended, no connection of theirs is left. */
async function checkConnections(url: string): Promise<void> {
  const sql = `
    select pid, application_name, state, query from pg_stat_activity
    where application_name in ('quarry', 'quarry listen') and datname = current_database()`;
  let left: Row[] = [];
  for (let poll = 0; poll < 250; poll++) {
    left = await asAdmin(url, sql);
    if (left.length === 0) return;
    await sleep(POLL_MS);
  }
  assert.deepEqual(left, [], "connections were left open");
}

async function asAdmin(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, application_name: "crash harness" });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
