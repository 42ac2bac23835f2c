import type { Database, Row } from "../database/database.ts";
import type { QueueStore } from "../queue/store.ts";
import { checkedId } from "./job-rows.ts";
import type { JobPayload } from "./queue.ts";

export interface DeadLetterChoice {
  /** These only; all unless said. */
  readonly ids?: readonly string[];
  /** Only those that failed longer ago than this. */
  readonly olderThanMs?: number;
}

/** What a job is made of; the rest says what became of it. */
const KEPT = [
  "id",
  "rule_id",
  "priority",
  "embedding_model",
  "input_text",
  "text_hash",
  "max_attempts",
  "created_at",
  "project_id",
  "created_by",
] as const;
const AT_ONCE_MAX = 500;

/** Jobs that failed for good: tried once more with fresh counters, or thrown away. */
export class DeadLetters {
  readonly #database: Database;
  readonly #jobs: QueueStore<JobPayload>;

  constructor(jobs: QueueStore<JobPayload>) {
    this.#database = jobs.database;
    this.#jobs = jobs;
  }

  async count(): Promise<number> {
    const [row] = await this.#database.query("select count(*) as count from embedding_job_failures");
    return Number(row!.count);
  }

  /** Back into the queue, each in the transaction that takes it from here. Returns how many. */
  redrive(choice: DeadLetterChoice = {}): Promise<number> {
    return this.#take(choice, async (rows, enqueue) => {
      await enqueue(
        rows.map((row) => Object.fromEntries(KEPT.map((name) => [name, row[name] ?? undefined]))),
      );
    });
  }

  purge(choice: DeadLetterChoice = {}): Promise<number> {
    return this.#take(choice, async () => undefined);
  }

  /**
   * Some at a time, so that no transaction grows with the number of failures. Only those that were there at the
   * beginning: what is driven again may fail again at once, and would be taken for ever.
   */
  async #take(
    choice: DeadLetterChoice,
    use: (rows: Row[], enqueue: (jobs: readonly object[]) => Promise<unknown>) => Promise<void>,
  ): Promise<number> {
    const { sql, params } = this.#takeSql(choice, await this.#now());
    let taken = 0;
    for (let last = AT_ONCE_MAX; last === AT_ONCE_MAX; taken += last) {
      last = await this.#database.transaction(async (transaction) => {
        const rows = await transaction.query(sql, params);
        if (rows.length > 0) await use(rows, (jobs) => this.#jobs.within(transaction).enqueue(jobs));
        return rows.length;
      });
    }
    return taken;
  }

  async #now(): Promise<unknown> {
    const given = this.#database.now();
    if (given !== null) return given;
    // As text: the column is more exact than a time in this program.
    const [row] = await this.#database.query("select now()::text as now");
    return row!.now;
  }

  #takeSql({ ids, olderThanMs }: DeadLetterChoice, startedAt: unknown): { sql: string; params: unknown[] } {
    const { dialect } = this.#database;
    const params: unknown[] = [startedAt];
    const terms = [`failed_at <= ${dialect.now}`];
    if (ids) {
      const keys = ids.map((id) => checkedId(id));
      terms.push(dialect.isOneOf("id", params.push(dialect.keys(keys)), "uuid"));
    }
    if (olderThanMs !== undefined)
      terms.push(
        `failed_at < ${dialect.shift(dialect.now, `-${dialect.param(params.push(olderThanMs), "real")}`)}`,
      );
    const some = `select id from embedding_job_failures where ${terms.join(" and ")} order by created_at, id limit ${AT_ONCE_MAX}${dialect.skipLocked}`;
    return {
      sql: `delete from embedding_job_failures where ${dialect.isAmong("id", some)} returning *`,
      params,
    };
  }
}
