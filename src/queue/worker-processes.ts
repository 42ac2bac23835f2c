import { hostname } from "node:os";
import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { isRunning, MACHINE } from "../processes.ts";
import { VERSION } from "../version.ts";
import type { LaneWait } from "./lane-wait.ts";

export const WORKER_STATES = ["active", "stale", "gone"] as const;
export type WorkerState = (typeof WORKER_STATES)[number];

export interface WorkerProcess {
  readonly id: string;
  /** "process": runs lanes of its own; "remote": takes work over HTTP. */
  readonly kind: "process" | "remote";
  readonly host: string;
  readonly pid: number | null;
  readonly version: string | null;
  readonly lanes: readonly string[];
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Its lanes whose tasks need something that is away. */
  readonly waits: readonly LaneWait[];
  readonly startedAt: string;
  readonly lastHeartbeat: string;
  /** "stale": silent for so long that its claims have been given to others. */
  readonly state: WorkerState;
}

export interface NewWorker {
  readonly host: string;
  readonly version?: string | undefined;
  readonly lanes: readonly string[];
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** After this many times the silence that makes it stale, a worker is taken for gone. */
const GONE_FACTOR = 10;
const REMEMBERED_MS = 24 * 3_600_000;

/** Who is at work: a row for each process that runs lanes, and for each worker elsewhere that takes tasks. */
export class WorkerProcesses {
  readonly #database: Database;
  readonly #silentMs: number;
  readonly #host: string;

  /**
   * `silentMs` is also how long leases last: whoever is silent for that long has lost its claims. `host` is what this
   * machine is called, when not by its host name.
   */
  constructor(database: Database, options: { silentMs: number; host?: string | undefined }) {
    this.#database = database;
    this.#silentMs = options.silentMs;
    this.#host = options.host ?? hostname();
  }

  /** A process of this program; also says that it still runs, when it is there already. */
  async beat(id: string, lanes: readonly string[], waits: readonly LaneWait[] = []): Promise<void> {
    await this.#insert({
      ...{ id, kind: "process", pid: process.pid, host: this.#host, version: VERSION, lanes },
      capabilities: { machine: MACHINE, ...(waits.length > 0 && { waits }) },
    });
    const { dialect } = this.#database;
    const sql = `delete from worker_processes where coalesce(left_at, last_heartbeat) < ${this.#ago(2)}`;
    await this.#database.query(
      { name: "worker_processes.forget", sql: `${sql} and ${dialect.now} is not null` },
      [this.#database.now(), REMEMBERED_MS],
    );
  }

  /** A worker elsewhere. It is known by the id that it gets here. */
  async register(worker: NewWorker): Promise<WorkerProcess> {
    const id = uuidv7(this.#database.clock.now());
    await this.#insert({ ...worker, id, kind: "remote", pid: 0 });
    return this.#read(id);
  }

  /** A worker elsewhere lives. Whoever was forgotten or has left must register again; processes speak for themselves. */
  async heartbeat(id: string): Promise<WorkerProcess> {
    const { now, mark } = this.#database.dialect;
    const sql = `update worker_processes set last_heartbeat = ${now} where id = ${mark(2)} and kind = 'remote' and left_at is null returning id`;
    await this.#database.query({ name: "worker_processes.heartbeat", sql }, [this.#database.now(), id]);
    const worker = await this.#read(id);
    if (worker.kind !== "remote") throw unknownWorker();
    if (worker.state !== "gone") return worker;
    throw new QuarryError("not_found", "this worker has left: register again");
  }

  async leave(id: string): Promise<void> {
    const { now, mark } = this.#database.dialect;
    const sql = `update worker_processes set left_at = ${now} where id = ${mark(2)}`;
    await this.#database.query({ name: "worker_processes.leave", sql }, [this.#database.now(), id]);
  }

  /** Processes of the last day that are known to be gone, not merely silent. */
  async gone(): Promise<string[]> {
    await this.#noticeDead();
    const rows = await this.#database.query({
      name: "worker_processes.gone",
      sql: "select id from worker_processes where left_at is not null",
    });
    return rows.map((row) => String(row.id));
  }

  /** Those at work, unless another state is asked for. */
  async list(states: readonly WorkerState[] = ["active"]): Promise<WorkerProcess[]> {
    await this.#noticeDead();
    const rows = await this.#database.query(
      { name: "worker_processes.list", sql: `${this.#select} order by id` },
      [this.#database.now(), this.#silentMs, this.#silentMs * GONE_FACTOR],
    );
    return rows.map(workerOf).filter(({ state }) => states.includes(state));
  }

  /** A process that was killed says no goodbye, but whoever runs on the same machine can see that it is gone. */
  async #noticeDead(): Promise<void> {
    const rows = await this.#database.query({
      name: "worker_processes.here",
      sql: "select id, pid, capabilities from worker_processes where kind = 'process' and left_at is null",
    });
    for (const row of rows) {
      const { machine } = fromJson(row.capabilities) as { machine?: string };
      if (machine === MACHINE && !isRunning(Number(row.pid))) await this.leave(String(row.id));
    }
  }

  async #read(id: string): Promise<WorkerProcess> {
    const sql = `select * from (${this.#select}) as w where id = ${this.#database.dialect.mark(4)}`;
    const [row] = await this.#database.query({ name: "worker_processes.read", sql }, [
      this.#database.now(),
      this.#silentMs,
      this.#silentMs * GONE_FACTOR,
      id,
    ]);
    if (row) return workerOf(row);
    throw unknownWorker();
  }

  async #insert(worker: NewWorker & { id: string; kind: "process" | "remote"; pid: number }): Promise<void> {
    const { now, mark, param } = this.#database.dialect;
    const values = [
      ...[mark(2), mark(3), mark(4), param(5, "integer"), mark(6)],
      ...[param(7, "json"), param(8, "json"), now, now],
    ];
    const sql = `insert into worker_processes (id, kind, host, pid, version, lanes, capabilities, started_at, last_heartbeat) values (${values.join(", ")}) on conflict (id) do update set last_heartbeat = excluded.last_heartbeat, capabilities = excluded.capabilities, left_at = null`;
    await this.#database.query({ name: "worker_processes.insert", sql }, [
      ...[this.#database.now(), worker.id, worker.kind, worker.host.slice(0, 255), worker.pid],
      ...[worker.version ?? null, JSON.stringify(worker.lanes), JSON.stringify(worker.capabilities)],
    ]);
  }

  /** $1 now, $2 silent after, $3 gone after. */
  get #select(): string {
    const state = `case when left_at is not null or last_heartbeat < ${this.#ago(3)} then 'gone' when last_heartbeat < ${this.#ago(2)} then 'stale' else 'active' end`;
    return `select id, kind, host, pid, version, lanes, capabilities, started_at, last_heartbeat, ${state} as state from worker_processes`;
  }

  #ago(param: number): string {
    const { dialect } = this.#database;
    return dialect.shift(dialect.now, `-${dialect.param(param, "real")}`);
  }
}

function unknownWorker(): QuarryError {
  return new QuarryError("not_found", "there is no such worker: register first");
}

function workerOf(row: Row): WorkerProcess {
  const kind = row.kind as WorkerProcess["kind"];
  const { waits, ...capabilities } = fromJson(row.capabilities) as Record<string, unknown>;
  // What a worker elsewhere says about itself is its own.
  const isOurs = kind === "process";
  return {
    id: String(row.id),
    kind,
    host: String(row.host),
    pid: kind === "remote" ? null : Number(row.pid),
    version: row.version as string | null,
    lanes: fromJson(row.lanes) as string[],
    capabilities: isOurs || waits === undefined ? capabilities : { ...capabilities, waits },
    waits: isOurs ? ((waits ?? []) as LaneWait[]) : [],
    startedAt: String(row.started_at),
    lastHeartbeat: String(row.last_heartbeat),
    state: row.state as WorkerState,
  };
}

function fromJson(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : value;
}
