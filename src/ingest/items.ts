import { pause } from "../clock.ts";
import type { Database, Row, Session, Statement, Transaction } from "../database/database.ts";
import { quoted } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { isName, NAMES_ARE } from "../names.ts";
import type { Queue } from "../queue/declaration.ts";
import { stringify } from "../queue/enqueue.ts";
import type { Ticket } from "../queue/outcome.ts";
import { type CancelVerdict, cancelTopic, openQueue, type QueueStore } from "../queue/store.ts";
import { refuseUnstorable } from "../queue/text.ts";
import type { WorkerProcess } from "../queue/worker-processes.ts";
import { type Item, type ItemFilter, type ItemPage, itemOf, listItems } from "./item-rows.ts";
import {
  type ItemsOutcome,
  type ItemsProgress,
  itemsFamily,
  itemsOutcome,
  itemsProgress,
} from "./items-progress.ts";
import { idempotencyKey } from "./keys.ts";
import { laterItemsAt, OPEN, type OpenItem, openItems, openItemsAt } from "./open-items.ts";
import { checkedPayload, checkOperation, seenOnOf } from "./payloads.ts";
import { describeProject } from "./project.ts";
import {
  type ItemPayload,
  type ItemQueues,
  type ItemType,
  LEASES_MS,
  type Operation,
  PRIORITIES,
  PRIORITY_MAX,
} from "./queue.ts";
import { FairTags } from "./turns.ts";
import { type WaitingItems, waitingItems } from "./waiting.ts";

export interface NewItem {
  readonly item_type: ItemType;
  readonly op: Operation;
  readonly payload: unknown;
  readonly tenant_id?: string | undefined;
  readonly collection?: string | undefined;
  /** 0 to 10; 5 unless said. */
  readonly priority?: number | undefined;
  readonly branch?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly max_retries?: number | undefined;
  /** The scan that found it. */
  readonly parent_id?: string | undefined;
}

/**
 * What became of it: "queued"; "merged" into one that waits, the newest operation and payload win; "runs_again" after the
 * one that is being worked on; "requeued" because the one before is done or failed.
 */
export const ENQUEUE_VERDICTS = ["queued", "merged", "runs_again", "requeued"] as const;
export type EnqueueVerdict = (typeof ENQUEUE_VERDICTS)[number];

export interface EnqueuedItem {
  readonly queue_id: string;
  readonly idempotency_key: string;
  readonly verdict: EnqueueVerdict;
}

const ROWS_PER_STATEMENT_MAX = 500;
const LOOK_EVERY_MS = 200;
/** What is worked on may put more into line until it is taken back. */
const PASSES_MAX = 5;

/** Everything that changes comes in here. */
export class Items {
  readonly #database: Database;
  readonly #queue: Queue<ItemPayload>;
  readonly #oldest: Queue<ItemPayload>;
  readonly #store: QueueStore<ItemPayload>;
  readonly #upsertSql: Statement;

  constructor(database: Database, queues: ItemQueues) {
    this.#database = database;
    this.#queue = queues.items;
    this.#oldest = queues.oldest;
    this.#store = openQueue(database, queues.items);
    this.#upsertSql = upsertStatement(database);
  }

  async enqueue(item: NewItem): Promise<EnqueuedItem> {
    const [enqueued] = await this.enqueueMany([item]);
    return enqueued!;
  }

  /** All or none, in the order given; with a claim, only while that stands. */
  async enqueueMany(items: readonly NewItem[], options: { claim?: Ticket } = {}): Promise<EnqueuedItem[]> {
    const { claim } = options;
    const rows = await Promise.all(items.map(async (item) => this.#rowOf(await withTenant(item))));
    const enqueued = await this.#database.transaction(async (transaction) => {
      if (claim) await this.#hold(transaction, claim);
      return this.#upsert(transaction, rows);
    });
    for (const { name } of [this.#queue, this.#oldest]) this.#database.notify(name);
    return enqueued;
  }

  /** Whoever cancels the item waits until the transaction is over, and finds what it wrote. */
  async #hold(transaction: Transaction, { key, token }: Ticket): Promise<void> {
    const { mark, name } = this.#database.dialect;
    const lock = name === "postgres" ? " for share" : "";
    const sql = `select 1 as held from unified_queue where queue_id = ${mark(1)} and lease_token = ${mark(2)} and status = 'in_progress'${lock}`;
    const rows = await transaction.query({ name: "items.hold", sql }, [key, token]);
    if (rows.length === 0)
      throw new QuarryError("lease_lost", `item ${key} was cancelled, or another worker has it now`);
  }

  async read(id: string): Promise<Item> {
    const sql = `select * from unified_queue where queue_id = ${this.#database.dialect.mark(1)}`;
    const [row] = await this.#database.query({ name: "items.read", sql }, [id]);
    if (row) return itemOf(row);
    throw new QuarryError("not_found", `there is no item ${JSON.stringify(id)}: see quarry queue list`);
  }

  /** Asks once more for what was asked for at a path after another item: that one may have undone it. */
  async repeatAfter(id: string, path: string): Promise<void> {
    const { tenant_id: tenant, collection } = await this.read(id);
    const statuses = ["in_progress", "done"] as const;
    for await (const found of laterItemsAt(this.#database, path, { after: id, statuses }))
      await this.enqueueMany(
        found
          .filter(({ op }) => op !== "delete")
          .map(({ item_type, op, payload, priority, metadata }) => ({
            ...{ item_type, op, payload, priority, metadata },
            ...{ tenant_id: tenant, collection },
          })),
      );
  }

  list(filter: ItemFilter = {}): Promise<ItemPage> {
    return listItems(this.#database, filter);
  }

  /** How far some items are, with everything that their scans found. */
  progress(ids: readonly string[]): Promise<ItemsProgress> {
    return itemsProgress(this.#database, ids);
  }

  /** How many nobody has taken up yet, and which machines those need that no worker is on. */
  async waiting(workers: readonly WorkerProcess[]): Promise<WaitingItems> {
    const found = await waitingItems(this.#database, workers);
    // A worker without a machine's name takes every item.
    return this.#queue.reserved ? found : { ...found, withoutWorkers: [] };
  }

  /** Waits until they, and everything that their scans found, are done or have failed. */
  async finished(ids: readonly string[], signal?: AbortSignal): Promise<ItemsProgress> {
    for (;;) {
      const progress = await this.progress(ids);
      if (progress.pending + progress.inProgress === 0) return progress;
      await pause(LOOK_EVERY_MS, signal);
      signal?.throwIfAborted();
    }
  }

  /** What became of all of them, in numbers. */
  outcome(ids: readonly string[]): Promise<ItemsOutcome> {
    return itemsOutcome(this.#database, ids);
  }

  /** Some items and what their scans found; those that failed first. */
  family(ids: readonly string[], options: { limit: number } = { limit: 1_000 }): Promise<Item[]> {
    return itemsFamily(this.#database, ids, options);
  }

  /** Notes what an item has become, for those who follow it, while its claim stands. Returns whether it does. */
  async noteDocument(claim: Ticket, documentId: string, session: Session = this.#database): Promise<boolean> {
    const { mark } = this.#database.dialect;
    const sql = `update unified_queue set document_id = ${mark(1)} where queue_id = ${mark(2)} and lease_token = ${mark(3)} and status = 'in_progress' returning queue_id`;
    const params = [documentId, claim.key, claim.token];
    return (await session.query({ name: "items.note", sql }, params)).length > 0;
  }

  /** From now on only the workers of that machine take it. */
  async reserve(claim: Ticket, machine: string): Promise<void> {
    const { mark } = this.#database.dialect;
    const sql = `update unified_queue set seen_on = ${mark(1)} where queue_id = ${mark(2)} and lease_token = ${mark(3)} and status = 'in_progress'`;
    await this.#database.query({ name: "items.reserve", sql }, [machine, claim.key, claim.token]);
  }

  /** Puts an item back into line that failed or is done, with fresh counters. */
  async retry(id: string): Promise<Item> {
    await this.#markRetried({ queue_id: id });
    const retried = await this.#store.retry([id], { includeDone: true });
    const item = await this.read(id);
    if (retried.length > 0) return item;
    throw new QuarryError("too_late", `item ${id} is ${item.status} already`);
  }

  async retryFailed(
    filter: Pick<ItemFilter, "item_type" | "tenant_id" | "collection"> = {},
  ): Promise<number> {
    const where = Object.fromEntries(
      (["item_type", "tenant_id", "collection"] as const).flatMap((name) =>
        filter[name] === undefined ? [] : [[name, filter[name]]],
      ),
    );
    await this.#markRetried({ ...where, status: "failed" });
    return this.#store.retryWhere({ status: "failed", where });
  }

  /** Their documents are tried again too, although the files are the same. */
  async #markRetried(where: Readonly<Record<string, unknown>>): Promise<void> {
    const { mark } = this.#database.dialect;
    const terms = Object.keys(where).map((name, position) => `${quoted(name)} = ${mark(position + 1)}`);
    const sql = `update unified_queue set last_enqueue = 'retried' where ${terms.join(" and ")} and status <> 'in_progress'`;
    await this.#database.query(sql, Object.values(where));
  }

  /** A waiting item goes away, one that is worked on is taken from its worker, a finished one is too late. */
  async cancel(id: string): Promise<Extract<CancelVerdict, "cancelled" | "aborted">> {
    const verdict = (await this.#cancel([id])).get(id);
    if (verdict === "cancelled" || verdict === "aborted") return verdict;
    const { status } = await this.read(id);
    throw new QuarryError("too_late", `item ${id} is ${status} and cannot be cancelled`);
  }

  /** Takes back everything that runs or waits in some tenant's name. Returns how many. */
  async cancelAll(filter: { tenant_id: string }, options: { except: string }): Promise<number> {
    let cancelled = 0;
    for (let pass = 0, found = 1; found > 0 && pass < PASSES_MAX; pass++) {
      found = 0;
      for await (const ids of openItems(this.#database, filter.tenant_id))
        found += (await this.#cancelSome(ids.filter((id) => id !== options.except))).size;
      cancelled += found;
    }
    return cancelled;
  }

  /**
   * Takes back what was to be done with a file or folder, and with all below it, when somebody asked for the item
   * `before`, and what that item has put into line itself, unless it moves them (`isMoved`); what came later stands. What
   * has failed can be asked for too: it is told, and stays.
   */
  async *cancelAt(
    path: string,
    options: { before: string; isMoved?: boolean; isFailedToo?: boolean },
  ): AsyncGenerator<OpenItem[]> {
    const { before, isMoved = false, isFailedToo = false } = options;
    const which = { before, isOwnToo: !isMoved };
    for (let pass = 0, found = 1; found > 0 && pass < PASSES_MAX; pass++) {
      found = 0;
      for await (const open of openItemsAt(this.#database, path, { ...which, statuses: OPEN })) {
        const cancelled = await this.#cancelSome(open.map(({ id }) => id));
        found += cancelled.size;
        yield open.filter(({ id }) => cancelled.has(id));
      }
    }
    // Last, because some may have failed meanwhile.
    if (isFailedToo) yield* openItemsAt(this.#database, path, { ...which, statuses: ["failed"] });
  }

  /** Returns those that were taken back; the others have ended meanwhile. */
  async #cancelSome(ids: readonly string[]): Promise<Set<string>> {
    const cancelled = new Set<string>();
    for (let start = 0; start < ids.length; start += ROWS_PER_STATEMENT_MAX) {
      const verdicts = await this.#cancel(ids.slice(start, start + ROWS_PER_STATEMENT_MAX));
      for (const [id, verdict] of verdicts)
        if (verdict === "cancelled" || verdict === "aborted") cancelled.add(String(id));
    }
    return cancelled;
  }

  async #cancel(ids: readonly string[]) {
    const verdicts = await this.#store.cancel(ids);
    // The store tells its own lane; the other one has the same rows.
    this.#database.notify(cancelTopic(this.#oldest));
    return verdicts;
  }

  prune(options: { doneOlderThanMs?: number; failedOlderThanMs?: number }): Promise<number> {
    return this.#store.prune({ ...options, limit: 10_000 });
  }

  async counts(): Promise<Record<string, number>> {
    return Object.fromEntries(await this.#store.countByStatus());
  }

  #rowOf(item: NewItem): Row {
    checkOperation(item.item_type, item.op);
    const collection = checkedName("collection", item.collection ?? "default");
    const payload = checkedPayload(item.item_type, item.payload);
    const priority = item.priority ?? PRIORITIES.normal;
    if (!(Number.isInteger(priority) && priority >= 0 && priority <= PRIORITY_MAX))
      throw new QuarryError("invalid_input", `priority: give a whole number from 0 to ${PRIORITY_MAX}`);
    const payloadJson = JSON.stringify(payload);
    const metadata = JSON.stringify(item.metadata ?? {});
    refuseUnstorable(payloadJson, "the payload");
    refuseUnstorable(metadata, "the metadata");
    const maxRetries = item.max_retries ?? 3;
    if (!(Number.isInteger(maxRetries) && maxRetries >= 1 && maxRetries <= 100))
      throw new QuarryError("invalid_input", "max_retries: give a whole number from 1 to 100");
    return {
      queue_id: uuidv7(this.#database.clock.now()),
      item_type: item.item_type,
      op: item.op,
      tenant_id: checkedName("tenant_id", item.tenant_id ?? "default"),
      collection,
      priority,
      idempotency_key: idempotencyKey(item.item_type, collection, payload),
      payload_json: payloadJson,
      metadata,
      branch: item.branch ?? "main",
      max_retries: maxRetries,
      lease_ms: LEASES_MS[item.item_type] ?? null,
      parent_id: item.parent_id ?? null,
      seen_on: seenOnOf(item.item_type, payload) ?? "",
    };
  }

  /** The same key twice in one call is the last one. */
  async #upsert(transaction: Transaction, rows: readonly Row[]): Promise<EnqueuedItem[]> {
    const tags = new FairTags(transaction, { database: this.#database, queue: this.#queue as Queue });
    const byKey = new Map<string, Row>();
    for (const row of rows) {
      const before = byKey.get(keyOf(row));
      const priority = Math.max(Number(row.priority), Number(before?.priority ?? 0));
      byKey.set(keyOf(row), { ...row, priority, queue_id: before?.queue_id ?? row.queue_id });
    }
    for (const row of byKey.values())
      row.fair_tag = await tags.next({
        tenant: String(row.tenant_id),
        priority: Number(row.priority),
        seenOn: String(row.seen_on),
      });
    const found = new Map<string, Row>();
    // Two calls that share keys lock them in the same order.
    const all = [...byKey.values()].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
    for (let start = 0; start < all.length; start += ROWS_PER_STATEMENT_MAX) {
      const json = stringify(this.#database, all.slice(start, start + ROWS_PER_STATEMENT_MAX));
      for (const row of await transaction.query(this.#upsertSql, [this.#database.now(), json]))
        found.set(keyOf(row), row);
    }
    return rows.map((row) => {
      const stored = found.get(keyOf(row))!;
      return {
        queue_id: String(stored.queue_id),
        idempotency_key: String(stored.idempotency_key),
        verdict: stored.last_enqueue as EnqueueVerdict,
      };
    });
  }
}

/** $1 now, $2 rows. Each column says what becomes of it in the four cases of a key that is there already. */
function upsertStatement({ dialect }: Database): Statement {
  const source = dialect.recordset("unified_queue", 2);
  const given = [
    ...[
      "queue_id",
      "item_type",
      "op",
      "tenant_id",
      "collection",
      "priority",
      "idempotency_key",
      "payload_json",
    ],
    ...["metadata", "branch", "max_retries", "lease_ms", "parent_id", "fair_tag", "seen_on"],
  ];
  const values: Record<string, string> = {
    ...Object.fromEntries(given.map((name) => [name, source.column(name, "plain")])),
    created_at: dialect.now,
    updated_at: dialect.now,
    enqueued_at: dialect.now,
    // A key can come back after its row was deleted; its tokens must not.
    lease_token: dialect.random,
  };
  const isRunning = "unified_queue.status = 'in_progress'";
  const isWaiting = "unified_queue.status = 'pending'";
  /** What came stands now, unless the item is being worked on. */
  const unlessRunning = (name: string, value = `excluded.${name}`) =>
    `case when ${isRunning} then unified_queue.${name} else ${value} end`;
  const ifRunning = (name: string, value: string) =>
    `case when ${isRunning} then ${value} else unified_queue.next_${name} end`;
  const highest = dialect.greatest("unified_queue.priority", "excluded.priority");
  const set: Record<string, string> = {
    op: unlessRunning("op"),
    payload_json: unlessRunning("payload_json"),
    metadata: unlessRunning("metadata"),
    branch: unlessRunning("branch"),
    max_retries: unlessRunning("max_retries"),
    seen_on: unlessRunning("seen_on"),
    priority: unlessRunning("priority", `case when ${isWaiting} then ${highest} else excluded.priority end`),
    // Who moves up to another priority stands in another line.
    fair_tag: unlessRunning(
      "fair_tag",
      `case when ${isWaiting} and excluded.priority <= unified_queue.priority then unified_queue.fair_tag else excluded.fair_tag end`,
    ),
    retry_count: unlessRunning("retry_count", "0"),
    run_after: unlessRunning("run_after", "null"),
    completed_at: unlessRunning("completed_at", "null"),
    document_id: unlessRunning("document_id", "null"),
    result_json: unlessRunning("result_json", "null"),
    parent_id: "coalesce(excluded.parent_id, unified_queue.parent_id)",
    next_op: ifRunning("op", "excluded.op"),
    next_payload_json: ifRunning("payload_json", "excluded.payload_json"),
    next_metadata: ifRunning("metadata", "excluded.metadata"),
    next_priority: ifRunning(
      "priority",
      dialect.greatest("coalesce(unified_queue.next_priority, 0)", "excluded.priority"),
    ),
    next_fair_tag: ifRunning(
      "fair_tag",
      "case when excluded.priority < unified_queue.next_priority then unified_queue.next_fair_tag else excluded.fair_tag end",
    ),
    last_enqueue: `case when ${isRunning} then 'runs_again' when ${isWaiting} then 'merged' else 'requeued' end`,
    updated_at: "excluded.updated_at",
    enqueued_at: "excluded.enqueued_at",
    status: unlessRunning("status", "'pending'"),
  };
  const updates = Object.entries(set).map(([name, value]) => `${name} = ${value}`);
  const sql = `insert into unified_queue (${Object.keys(values).map(quoted).join(", ")}) select ${Object.values(values).join(", ")} from ${source.from} where ${dialect.now} is not null on conflict (idempotency_key, tenant_id) do update set ${updates.join(", ")} returning queue_id, idempotency_key, tenant_id, last_enqueue`;
  return { name: "items.upsert", sql };
}

/** A project is a tenant of its own, the same one wherever it was cloned, unless somebody says whose it is. */
async function withTenant(item: NewItem): Promise<NewItem> {
  if (item.item_type !== "project" || item.tenant_id !== undefined) return item;
  const { project_root: root, ...known } = checkedPayload("project", item.payload);
  return { ...item, tenant_id: (await describeProject(root, known)).tenant_id };
}

function keyOf(row: Row): string {
  return `${row.idempotency_key} ${row.tenant_id}`;
}

function checkedName(what: "tenant_id" | "collection", name: string): string {
  if (isName(name)) return name;
  throw new QuarryError("invalid_input", `${what}: ${NAMES_ARE}`);
}
