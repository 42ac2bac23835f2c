import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { quoted } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import type { Queue } from "./declaration.ts";
import type { Claim, Outcome, Ticket, Verdict } from "./outcome.ts";
import { PAUSE_TOPIC, Pauses } from "./pauses.ts";
import type { Key } from "./roll-up.ts";
import { KEY } from "./statements.ts";
import { openQueue, type QueueStore } from "./store.ts";
import type { NewWorker, WorkerProcess, WorkerProcesses } from "./worker-processes.ts";

/** A queue that workers in any language may take from, and what their results must look like. */
export interface RemoteQueue {
  readonly queue: Queue;
  /** Turns what workers handed in into columns, in the order given. Throws `invalid_input` for what makes no sense. */
  columnsOf(results: readonly RemoteResult[]): Promise<Record<string, unknown>[]>;
}

export interface RemoteResult {
  readonly key: Key;
  readonly result: Record<string, unknown>;
  readonly worker: WorkerProcess;
}

export type RemoteOutcome = Ticket &
  (
    | { readonly kind: "done"; readonly result: Record<string, unknown> }
    | { readonly kind: "retry"; readonly reason: string; readonly delayMs?: number | undefined }
    | { readonly kind: "failed"; readonly reason: string }
    | { readonly kind: "released"; readonly delayMs?: number | undefined }
  );

interface Parts {
  readonly database: Database;
  readonly workers: WorkerProcesses;
  readonly queues: readonly RemoteQueue[];
  readonly pollMs: number;
}

/** Lanes for workers that are not processes of this program: the same claims, tokens and leases, from call to call. */
export class RemoteWork {
  readonly #parts: Parts;
  readonly #pauses: Pauses;
  readonly #stores: ReadonlyMap<string, { remote: RemoteQueue; store: QueueStore<object> }>;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#pauses = new Pauses(parts.database);
    this.#stores = new Map(
      parts.queues.map((remote) => [
        remote.queue.name,
        { remote, store: openQueue(parts.database, remote.queue) },
      ]),
    );
  }

  get queues(): string[] {
    return [...this.#stores.keys()];
  }

  register(worker: NewWorker): Promise<WorkerProcess> {
    return this.#parts.workers.register(worker);
  }

  heartbeat(worker: string): Promise<WorkerProcess> {
    return this.#parts.workers.heartbeat(worker);
  }

  /** What it still holds goes back when its leases run out. */
  async leave(worker: string): Promise<void> {
    await this.#parts.workers.heartbeat(worker);
    await this.#parts.workers.leave(worker);
  }

  /** The next tasks; when there are none, those that come within `waitMs`. Every call counts as a heartbeat. */
  async claim(
    queue: string,
    options: { worker: string; limit: number; waitMs: number; signal: AbortSignal },
  ): Promise<{ claims: Claim<object>[]; leaseMs: number }> {
    const { store } = this.#open(queue);
    await this.heartbeat(options.worker);
    const { clock } = this.#parts.database;
    const endsAt = clock.monotonic() + options.waitMs;
    const leaseMs = store.queue.lease.ms;
    while (!options.signal.aborted) {
      const claims = await this.#take(store, options);
      const leftMs = endsAt - clock.monotonic();
      // Whoever has gone meanwhile must not take tasks along.
      if (options.signal.aborted) await store.release(claims);
      else if (claims.length > 0 || leftMs <= 0) return { claims, leaseMs };
      else await this.#untilWoken(queue, Math.min(leftMs, this.#parts.pollMs), options.signal);
    }
    return { claims: [], leaseMs };
  }

  /** Renews leases. Tasks whose key is not in the answer are lost: another worker has them, or they were cancelled. */
  async extend(queue: string, worker: string, tickets: readonly Ticket[]): Promise<Set<Key>> {
    const { store } = this.#open(queue);
    await this.heartbeat(worker);
    const foreign = await this.#heldByOthers(store, worker, tickets);
    return store.extend(tickets.filter(({ key }) => !foreign.has(key)).map(claimOf));
  }

  /** Gives back what was claimed and never reached its worker. */
  async release(queue: string, claims: readonly Claim<object>[]): Promise<void> {
    await this.#open(queue).store.release(claims);
  }

  /** In the order given. A call may be repeated when its answer was lost: what it has settled counts as settled. */
  async settle(queue: string, worker: string, outcomes: readonly RemoteOutcome[]): Promise<Verdict[]> {
    const { store, remote } = this.#open(queue);
    refuseTwice(outcomes);
    const who = await this.heartbeat(worker);
    const foreign = await this.#heldByOthers(store, worker, outcomes);
    const own = outcomes.filter(({ key }) => !foreign.has(key));
    const done = own.filter((outcome) => outcome.kind === "done");
    const columns = await remote.columnsOf(done.map(({ key, result }) => ({ key, result, worker: who })));
    const results = new Map(done.map(({ key }, position) => [key, columns[position]!]));
    const held = await store.findHeld(own);
    const verdicts = await store.settle(
      own.map((outcome) => ({
        claim: held.get(outcome.key) ?? claimOf(outcome),
        outcome: outcomeOf(outcome, results),
      })),
      { isRepeat: true },
    );
    const byKey = new Map(own.map(({ key }, position) => [key, verdicts[position]!]));
    return outcomes.map(({ key }) => byKey.get(key) ?? "lost");
  }

  /** A token shows that a row was claimed; only the worker that claimed it may write about it. */
  async #heldByOthers(
    { queue }: QueueStore<object>,
    worker: string,
    tickets: readonly Ticket[],
  ): Promise<Set<Key>> {
    if (!queue.columns.worker) return new Set();
    const { dialect } = this.#parts.database;
    const key = quoted(queue.key.column);
    const sql = `select ${key} as ${KEY} from ${quoted(queue.table)} where ${dialect.isOneOf(key, 1, queue.key.type)} and ${quoted(queue.columns.worker)} <> ${dialect.mark(2)}`;
    const keys = dialect.keys(tickets.map((ticket) => ticket.key));
    const rows = await this.#parts.database.query({ name: `${queue.name}.heldByOthers`, sql }, [
      keys,
      worker,
    ]);
    return new Set(rows.map((row) => row[KEY] as Key));
  }

  /** Work that came or fell due is taken without waiting for a janitor. */
  async #take(
    store: QueueStore<object>,
    { worker, limit }: { worker: string; limit: number },
  ): Promise<Claim<object>[]> {
    // Who has paused a lane means all of its workers.
    if ((await this.#pauses.list()).has(store.queue.name)) return [];
    const claims = await store.claim({ worker, limit });
    if (claims.length > 0 || (await store.nextDueMs()) !== 0) return claims;
    return (await store.promoteDelayed()) > 0 ? store.claim({ worker, limit }) : claims;
  }

  async #untilWoken(queue: string, waitMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const { database } = this.#parts;
    const subscriptions = [queue, PAUSE_TOPIC].map((topic) => database.subscribe(topic, () => woken.abort()));
    try {
      await pause(waitMs, AbortSignal.any([woken.signal, signal]));
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe();
    }
  }

  #open(queue: string) {
    const found = this.#stores.get(queue);
    if (found) return found;
    throw new QuarryError(
      "not_found",
      `there is no queue of this name for workers elsewhere; there are ${this.queues.join(", ")}`,
    );
  }
}

/** Only key and token count when a lease is renewed or a claim turns out to be lost. */
function claimOf({ key, token }: Ticket): Claim<object> {
  return { key, token, attempt: 1, attemptsMax: 1, row: {} };
}

function outcomeOf(outcome: RemoteOutcome, results: ReadonlyMap<Key, Record<string, unknown>>): Outcome {
  switch (outcome.kind) {
    case "done":
      return { kind: "done", result: results.get(outcome.key)! };
    case "retry":
      return { kind: "retry", reason: outcome.reason, ...delayOf(outcome) };
    case "failed":
      return { kind: "failed", reason: outcome.reason };
    case "released":
      return { kind: "released", ...delayOf(outcome) };
    default:
      return outcome satisfies never;
  }
}

function delayOf({ delayMs }: { delayMs?: number | undefined }): { delayMs?: number } {
  return delayMs === undefined ? {} : { delayMs };
}

function refuseTwice(outcomes: readonly Ticket[]): void {
  if (new Set(outcomes.map(({ key }) => key)).size === outcomes.length) return;
  throw new QuarryError("invalid_input", "one task was settled twice in one call");
}
