import { hostname } from "node:os";
import type { Database } from "../database/database.ts";

export interface WorkerProcess {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly lanes: readonly string[];
  readonly startedAt: string;
  readonly lastHeartbeat: string;
}

/** Who is at work: a row for each process that runs lanes. One that falls silent is forgotten. */
export class WorkerProcesses {
  readonly #database: Database;
  readonly #silentMs: number;

  constructor(database: Database, options: { silentMs: number }) {
    this.#database = database;
    this.#silentMs = options.silentMs;
  }

  /** Also says that it still runs, when it is there already. */
  async beat(id: string, lanes: readonly string[]): Promise<void> {
    const { now } = this.#database.dialect;
    const [name, host, pid, list] = this.#marks("text", "text", "integer", "jsonb");
    const sql = `insert into worker_processes (id, host, pid, lanes, started_at, last_heartbeat) values (${name}, ${host}, ${pid}, ${list}, ${now}, ${now}) on conflict (id) do update set last_heartbeat = excluded.last_heartbeat`;
    await this.#database.query({ name: "worker_processes.beat", sql }, [
      this.#database.now(),
      id,
      hostname().slice(0, 255),
      process.pid,
      JSON.stringify(lanes),
    ]);
    await this.#database.query(
      {
        name: "worker_processes.forget",
        sql: `delete from worker_processes where not (${this.#isAlive(2)})`,
      },
      [this.#database.now(), this.#silentMs],
    );
  }

  async leave(id: string): Promise<void> {
    const mark = this.#database.dialect.name === "postgres" ? "$1" : "?1";
    const sql = `delete from worker_processes where id = ${mark}`;
    await this.#database.query({ name: "worker_processes.leave", sql }, [id]);
  }

  async list(): Promise<WorkerProcess[]> {
    const rows = await this.#database.query(
      {
        name: "worker_processes.list",
        sql: `select id, host, pid, lanes, started_at, last_heartbeat from worker_processes where ${this.#isAlive(2)} order by id`,
      },
      [this.#database.now(), this.#silentMs],
    );
    return rows.map((row) => ({
      id: String(row.id),
      host: String(row.host),
      pid: Number(row.pid),
      lanes: typeof row.lanes === "string" ? JSON.parse(row.lanes) : (row.lanes as string[]),
      startedAt: String(row.started_at),
      lastHeartbeat: String(row.last_heartbeat),
    }));
  }

  #isAlive(param: number): string {
    const { dialect } = this.#database;
    return `last_heartbeat >= ${dialect.shift(dialect.now, `-${dialect.param(param, "real")}`)}`;
  }

  /** Parameters from the second on; the first is always the time. */
  #marks(...types: readonly string[]): string[] {
    const isPostgres = this.#database.dialect.name === "postgres";
    return types.map((type, index) => (isPostgres ? `$${index + 2}::${type}` : `?${index + 2}`));
  }
}
