import type { Database, Row, Session, Statement } from "../database/database.ts";
import { quoted } from "../database/dialect.ts";
import { stringify } from "../queue/enqueue.ts";
import type { EnqueueVerdict } from "./items.ts";

export interface Merged {
  readonly queue_id: string;
  readonly verdict: EnqueueVerdict;
}

const COLUMNS = [
  ...[
    "queue_id",
    "item_type",
    "op",
    "tenant_id",
    "collection",
    "priority",
    "status",
    "created_at",
    "updated_at",
  ],
  ...["idempotency_key", "payload_json", "retry_count", "max_retries", "error_message", "last_error_at"],
  ...["branch", "metadata", "run_after", "lease_ms", "completed_at", "fair_tag"],
];

/**
 * Puts rows of the old system among those of the queue. As in the queue itself, the newest request of a key wins and
 * the highest priority stays; but here the newest is not the one that comes last. `updated_at` is when a row was asked
 * for, and is compared with when the queue's own row last changed.
 */
export class LegacyMerge {
  readonly #database: Database;
  readonly #statement: Statement;

  constructor(database: Database) {
    this.#database = database;
    this.#statement = mergeStatement(database);
  }

  /** What became of each row, in the order given. */
  async run(session: Session, rows: readonly Row[]): Promise<Merged[]> {
    const merged = new Map<Row, Merged>();
    for (const round of rounds(rows)) {
      const json = stringify(this.#database, [...round.values()]);
      for (const stored of await session.query(this.#statement, [json]))
        merged.set(round.get(keyOf(stored))!, {
          queue_id: String(stored.queue_id),
          verdict: stored.last_enqueue as EnqueueVerdict,
        });
    }
    return rows.map((row) => merged.get(row)!);
  }
}

/** One statement can write a key once only; what comes again waits for the next round. */
function rounds(rows: readonly Row[]): Map<string, Row>[] {
  const all: Map<string, Row>[] = [];
  const times = new Map<string, number>();
  for (const row of rows) {
    const key = keyOf(row);
    const round = times.get(key) ?? 0;
    times.set(key, round + 1);
    all[round] ??= new Map();
    all[round].set(key, row);
  }
  return all;
}

function keyOf(row: Row): string {
  return `${row.idempotency_key} ${row.tenant_id}`;
}

/** $1 rows. Each column says what becomes of it where the key is there already. */
function mergeStatement({ dialect }: Database): Statement {
  const source = dialect.recordset("unified_queue", 1);
  const values: Record<string, string> = {
    ...Object.fromEntries(COLUMNS.map((name) => [name, source.column(name, "plain")])),
    // A key can come back after its row was deleted; its tokens must not.
    lease_token: dialect.random,
  };
  const isStatus = (status: string) => `unified_queue.status = '${status}'`;
  const isRunning = isStatus("in_progress");
  const isNewer = "excluded.updated_at >= unified_queue.updated_at";
  const isWork = "excluded.status = 'pending'";
  const takesWork = `not ${isRunning} and ${isNewer}`;
  // Work that waits is not lost to a request that failed, whichever is newer. What is done is only done again for a newer one.
  const takesState = `(${isStatus("done")} and ${isNewer}) or (${isStatus("failed")} and (${isNewer} or ${isWork})) or (${isStatus("pending")} and ${isNewer} and ${isWork})`;
  const runsAgain = `${isRunning} and ${isNewer} and ${isWork}`;
  const staysOver = `${isRunning} or (${isStatus("done")} and not ${isNewer})`;
  const taken = (name: string, condition: string, value = `excluded.${name}`) =>
    `case when ${condition} then ${value} else unified_queue.${name} end`;
  const highest = dialect.greatest("unified_queue.priority", "excluded.priority");
  const next = (name: string) =>
    `case when ${runsAgain} then excluded.${name} else unified_queue.next_${name} end`;
  const all = (names: readonly string[], condition: string) =>
    Object.fromEntries(names.map((name) => [name, taken(name, condition)]));
  const set: Record<string, string> = {
    ...all(["op", "payload_json", "metadata", "branch"], takesWork),
    ...all(
      ["status", "retry_count", "max_retries", "error_message", "last_error_at", "run_after", "completed_at"],
      takesState,
    ),
    priority: `case when ${staysOver} then unified_queue.priority when ${isStatus("done")} then excluded.priority else ${highest} end`,
    // Who moves up to another priority stands in another line.
    fair_tag: taken(
      "fair_tag",
      `not (${staysOver}) and (${isStatus("done")} or excluded.priority > unified_queue.priority)`,
    ),
    created_at: taken(
      "created_at",
      `not (${isRunning}) and not ${isStatus("done")} and excluded.created_at < unified_queue.created_at`,
    ),
    updated_at: taken("updated_at", isNewer),
    next_op: next("op"),
    next_payload_json: next("payload_json"),
    next_metadata: next("metadata"),
    next_priority: next("priority"),
    last_enqueue: `case when ${runsAgain} then 'runs_again' when ${isStatus("done")} and ${isNewer} then 'requeued' else 'merged' end`,
  };
  const updates = Object.entries(set).map(([name, value]) => `${name} = ${value}`);
  const sql = `insert into unified_queue (${Object.keys(values).map(quoted).join(", ")}) select ${Object.values(values).join(", ")} from ${source.from} where true on conflict (idempotency_key, tenant_id) do update set ${updates.join(", ")} returning queue_id, idempotency_key, tenant_id, last_enqueue`;
  return { name: "legacy.merge", sql };
}
