import type { Clock } from "../clock.ts";
import type { Queue } from "./declaration.ts";
import type { Claim, Settlement, Ticket, Verdict } from "./outcome.ts";
import type { Key } from "./roll-up.ts";

/**
 * What lanes, leases and janitors ask of a queue, wherever its rows are kept. `QueueStore` is the one over a
 * table; a lane may bring another.
 */
export interface LaneStore<Payload extends object = Record<string, unknown>> {
  readonly queue: Queue<Payload>;
  readonly clock: Clock;

  /** Hints, never the truth: lanes poll. Returns what ends the subscription. */
  subscribe(listeners: LaneListeners): () => void;
  /** Takes the next rows, in the queue's order. */
  claim(options: ClaimOptions): Promise<Claim<Payload>[]>;
  /** Renews leases. Claims whose key is not in the answer are lost. */
  extend(claims: readonly Claim<object>[]): Promise<Set<Key>>;
  /** Which of these claims still stand. Only reads. */
  stillHeld(claims: readonly Ticket[]): Promise<Set<Key>>;
  /** Writes down what became of claims, in the order given. */
  settle(settlements: readonly Settlement[], options?: SettleOptions): Promise<Verdict[]>;
  /** Gives claims back untouched: no attempt is spent. */
  release(claims: readonly Claim<object>[], options?: { delayMs?: number }): Promise<number>;

  /** Takes rows from workers that fell silent. Each costs an attempt. */
  rescueStale(options?: { limit?: number }): Promise<Rescued[]>;
  /** Ends the leases of workers that are known to be gone, so that the next rescue takes their rows. Returns how many. */
  expireLeases(workers: readonly string[]): Promise<number>;
  /** Makes delayed rows claimable whose time has come. */
  promoteDelayed(options?: { limit?: number }): Promise<number>;
  /** How long until the next delayed row is due; undefined when none is. */
  nextDueMs(): Promise<number | undefined>;
  /** Deletes finished rows that are older than the given ages. */
  prune(options: PruneOptions): Promise<number>;
  /** Puts right what no single operation can see, a bounded amount at a time. Returns how much was mended. */
  repair(options?: { limit?: number }): Promise<number>;
}

export interface LaneListeners {
  /** There may be something to claim. */
  readonly onWork: () => void;
  /** Something was cancelled: a claim may not stand any more. */
  readonly onCancel: () => void;
}

export interface ClaimOptions {
  readonly worker: string;
  readonly limit: number;
  /** There was more a moment ago: looking first whether there is anything would be for nothing. */
  readonly isExpected?: boolean;
}

export interface SettleOptions {
  /** An earlier try may have succeeded unseen: a row that this very claim has settled counts as settled. */
  readonly isRepeat?: boolean;
}

export interface Rescued {
  readonly key: Key;
  /** True when it had no attempts left. */
  readonly isFailed: boolean;
}

export interface PruneOptions {
  readonly doneOlderThanMs?: number;
  readonly failedOlderThanMs?: number;
  readonly limit?: number;
}

export const CLAIM_MAX = 10_000;

/** The same store, but for what is done otherwise. */
export function altered<Payload extends object>(
  store: LaneStore<Payload>,
  otherwise: Partial<LaneStore<Payload>>,
): LaneStore<Payload> {
  return {
    queue: store.queue,
    clock: store.clock,
    subscribe: (listeners) => store.subscribe(listeners),
    claim: (options) => store.claim(options),
    extend: (claims) => store.extend(claims),
    stillHeld: (claims) => store.stillHeld(claims),
    settle: (settlements, options) => store.settle(settlements, options),
    release: (claims, options) => store.release(claims, options),
    rescueStale: (options) => store.rescueStale(options),
    expireLeases: (workers) => store.expireLeases(workers),
    promoteDelayed: (options) => store.promoteDelayed(options),
    nextDueMs: () => store.nextDueMs(),
    prune: (options) => store.prune(options),
    repair: (options) => store.repair(options),
    ...otherwise,
  };
}
