import type { Database, Row, Session } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import type { Scope } from "./catalogue.ts";
import { newAgentId } from "./entities.ts";
import type { FunctionTaskStatus } from "./queue.ts";
import type { Citation, WorkerResult } from "./results.ts";

export const WORKER_KINDS = ["standard", "sql"] as const;
/** "standard" searches the passages, "sql" asks the catalogue. */
export type WorkerKind = (typeof WORKER_KINDS)[number];

/** A part of a plan. */
export interface Step {
  readonly kind: WorkerKind;
  readonly task: string;
}

/** "working" until the last worker has ended, however it ended. */
export const PHASES = ["planning", "working", "synthesis"] as const;
export type PlannerPhase = (typeof PHASES)[number];

/** A question and what has become of it, in the columns' own words. */
export interface Planner {
  readonly planner_id: string;
  readonly user_question: string;
  readonly instruction: string;
  readonly tenant: string;
  readonly collection: string | null;
  readonly status: FunctionTaskStatus;
  readonly phase: PlannerPhase;
  readonly plan: readonly Step[] | null;
  readonly answer: string | null;
  readonly citations: readonly Citation[];
  /** What the reader of the answer should know about it. */
  readonly notes: readonly string[];
  /** By the planner itself; workers have their own. */
  readonly tokens_used: number;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

export interface AgentWorker extends Step {
  readonly worker_id: string;
  /** Null: one that was made by hand. */
  readonly planner_id: string | null;
  readonly position: number;
  readonly status: FunctionTaskStatus;
  readonly result: WorkerResult | null;
  readonly tokens_used: number;
  readonly error_message: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

const PROGRESS_COLUMNS = [
  ...(["worker_id", "position", "kind", "task", "status", "tokens_used"] as const),
  ...(["error_message", "started_at", "finished_at"] as const),
];
export type WorkerProgress = Pick<AgentWorker, (typeof PROGRESS_COLUMNS)[number]>;

export interface AgentEntity {
  readonly table: "planners" | "workers";
  readonly id: string;
}

export interface NewQuestion extends Scope {
  readonly question: string;
  readonly instruction: string;
}

/** Columns that hold JSON. */
const JSON_COLUMNS = new Set(["plan", "citations", "notes", "result"]);
const TIMES = new Set(["started_at", "finished_at"]);
export const TENANT = "default";

/** Rows of questions and of the workers that look for their answers. Functions write through a transaction. */
export class Planners {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async create(
    session: Session,
    { question, instruction, tenant, collection }: NewQuestion,
  ): Promise<string> {
    const { mark } = this.#database.dialect;
    const id = newAgentId(this.#database);
    await session.query(
      `insert into planners (planner_id, user_question, instruction, tenant, collection) values (${[1, 2, 3, 4, 5].map(mark).join(", ")})`,
      [id, question, instruction, tenant, collection],
    );
    return id;
  }

  async read(id: string): Promise<Planner> {
    const { mark } = this.#database.dialect;
    const [row] = await this.#database.query(`select * from planners where planner_id = ${mark(1)}`, [id]);
    if (!row) throw new QuarryError("not_found", `there is no question ${JSON.stringify(id)}`);
    const { updated_at: _, ...planner } = readRow(row);
    const { tenant, citations, notes } = planner;
    return { ...planner, tenant: tenant ?? TENANT, citations: citations ?? [], notes: notes ?? [] } as never;
  }

  async worker(id: string): Promise<AgentWorker> {
    const { mark } = this.#database.dialect;
    const [row] = await this.#database.query(`select * from workers where worker_id = ${mark(1)}`, [id]);
    if (!row) throw new QuarryError("not_found", `there is no worker ${JSON.stringify(id)}`);
    return workerOf(row);
  }

  /** In the order of the plan. */
  async workers(plannerId: string): Promise<AgentWorker[]> {
    const { mark } = this.#database.dialect;
    const rows = await this.#database.query(
      `select * from workers where planner_id = ${mark(1)} order by position`,
      [plannerId],
    );
    return rows.map(workerOf);
  }

  /** How far they are, without what they found: whoever waits looks often. */
  async progress(plannerId: string): Promise<WorkerProgress[]> {
    const { mark } = this.#database.dialect;
    const rows = await this.#database.query(
      `select ${PROGRESS_COLUMNS.join(", ")} from workers where planner_id = ${mark(1)} order by position`,
      [plannerId],
    );
    return rows as never;
  }

  /** Makes the workers of a plan, each with the id it is given. */
  async hire(session: Session, plannerId: string, hired: readonly (Step & { id: string })[]): Promise<void> {
    const { mark } = this.#database.dialect;
    for (const [position, { id, kind, task }] of hired.entries())
      await session.query(
        `insert into workers (worker_id, planner_id, position, kind, task) values (${[1, 2, 3, 4, 5].map(mark).join(", ")})`,
        [id, plannerId, position, kind, task],
      );
  }

  /** For whoever watches. One that was cancelled meanwhile stays so. */
  async begin(session: Session, entity: AgentEntity): Promise<void> {
    const { now, mark } = this.#database.dialect;
    await session.query(
      `update ${entity.table} set status = 'IN_PROGRESS', started_at = coalesce(started_at, ${now}), updated_at = ${now} where ${keyOf(entity)} = ${mark(2)} and status = 'PENDING'`,
      [this.#database.now(), entity.id],
    );
  }

  /** Its workers are there. One that was cancelled meanwhile waits for none of them. */
  async expectWorkers(session: Session, id: string): Promise<void> {
    const { now, mark } = this.#database.dialect;
    await session.query(
      `update planners set phase = 'working', updated_at = ${now} where planner_id = ${mark(2)} and status <> 'FAILED'`,
      [this.#database.now(), id],
    );
  }

  /**
   * Unless it was cancelled meanwhile, or one of its workers was put back into line: then there will be another answer.
   * Says whether the answer is wanted.
   */
  async complete(session: Session, id: string): Promise<boolean> {
    const { now, mark } = this.#database.dialect;
    const rows = await session.query(
      `update planners set status = 'COMPLETED', error_message = null, finished_at = ${now}, updated_at = ${now} where planner_id = ${mark(2)} and phase = 'synthesis' and status <> 'FAILED' returning planner_id`,
      [this.#database.now(), id],
    );
    return rows.length > 0;
  }

  /** Tokens are added to those that were used before; times are "now" where true. */
  async change(
    session: Session,
    entity: AgentEntity,
    changes: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { dialect } = this.#database;
    const params: unknown[] = [this.#database.now()];
    const set = Object.entries(changes).map(([name, value]) => {
      if (TIMES.has(name)) return `${name} = ${value === true ? dialect.now : "null"}`;
      if (name === "tokens_used")
        return `${name} = ${name} + ${dialect.param(params.push(value), "integer")}`;
      if (JSON_COLUMNS.has(name))
        return `${name} = ${dialect.param(params.push(JSON.stringify(value)), "json")}`;
      return `${name} = ${dialect.param(params.push(value), "text")}`;
    });
    await session.query(
      `update ${entity.table} set ${[...set, `updated_at = ${dialect.now}`].join(", ")} where ${keyOf(entity)} = ${dialect.mark(params.push(entity.id))}`,
      params,
    );
  }
}

function keyOf({ table }: AgentEntity): string {
  return table === "planners" ? "planner_id" : "worker_id";
}

function workerOf(row: Row): AgentWorker {
  const { created_at: _, updated_at: __, ...worker } = readRow(row);
  return worker as never;
}

function readRow(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      JSON_COLUMNS.has(name) && typeof value === "string" ? JSON.parse(value) : value,
    ]),
  );
}
