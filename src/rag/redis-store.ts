import type { Clock } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Queue } from "../queue/declaration.ts";
import {
  CLAIM_MAX,
  type ClaimOptions,
  type LaneListeners,
  type LaneStore,
  type PruneOptions,
  type Rescued,
  type SettleOptions,
} from "../queue/lane-store.ts";
import type { Claim, Outcome, Settlement, Ticket, Verdict } from "../queue/outcome.ts";
import type { Key } from "../queue/roll-up.ts";
import { errorText } from "../queue/text.ts";
import type { Beat } from "./beat.ts";
import type { JobClaim, Ledger } from "./ledger.ts";
import { costOf } from "./lines.ts";
import { MESSAGE_BYTES_MAX, readMessage } from "./message.ts";
import { MALFORMED, type RagPayload } from "./queue.ts";
import { FORGET_DEAD } from "./redis-letter-scripts.ts";
import type { RedisLink, Script } from "./redis-link.ts";
import {
  CLAIM,
  EXPIRE,
  EXTEND,
  GIVE_BACK,
  LOOK,
  NEXT_DUE,
  PROMOTE,
  REPORT,
  RESCUE,
  SETTLE,
} from "./redis-scripts.ts";
import type { Restorer } from "./restorer.ts";
import type { Watch } from "./watch.ts";

/** A script holds up the whole server: larger calls are made in parts. */
const CLAIMED_AT_ONCE = 250;
const SETTLED_AT_ONCE = 500;
const SWEEP_LIMIT = 500;

export interface RedisStoreParts {
  readonly link: RedisLink;
  readonly queue: Queue<RagPayload>;
  readonly ledger: Ledger;
  readonly restorer: Restorer;
  readonly watch: Watch;
  readonly beat: Beat;
  readonly clock: Clock;
  readonly log: Log;
  /** What scripts take as "now": empty lets Redis use its own clock. */
  readonly now: () => string;
}

/** The queue as lanes and janitors see it: every operation is one script, and what it decided is told to the ledger. */
export class RedisStore implements LaneStore<RagPayload> {
  readonly queue: Queue<RagPayload>;
  readonly clock: Clock;
  readonly #parts: RedisStoreParts;
  /** By worker: what was handed out and is not settled yet. */
  readonly #inHands = new Map<string, Set<Key>>();
  /** Workers that may have been given jobs in an answer that never came. */
  readonly #unsure = new Set<string>();

  constructor(parts: RedisStoreParts) {
    this.queue = parts.queue;
    this.clock = parts.clock;
    this.#parts = parts;
  }

  subscribe(listeners: LaneListeners): () => void {
    const { beat, watch } = this.#parts;
    beat.add(listeners);
    const unsubscribe = watch.subscribe(listeners.onWork);
    return () => {
      beat.delete(listeners);
      unsubscribe();
    };
  }

  async claim({ worker, limit }: ClaimOptions): Promise<Claim<RagPayload>[]> {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= CLAIM_MAX))
      throw new QuarryError("invalid_input", `a claim takes 1 to ${CLAIM_MAX} rows, not ${limit}`);
    this.#parts.beat.heard(worker);
    await this.#giveBackUnseen(worker);
    const claims = await this.#claimAll(worker, limit);
    return claims.length === 0 ? [] : this.#taken(claims, worker);
  }

  /** A first part says whether there is more; then the others are asked for at once, and Redis has them one after the other. */
  async #claimAll(worker: string, limit: number): Promise<JobClaim[]> {
    const first = await this.#claimSome(worker, Math.min(CLAIMED_AT_ONCE, limit));
    const claims = [...first.claims];
    for (let hasMore = first.hasMore; hasMore && claims.length < limit; ) {
      const sizes = inSizes(limit - claims.length, CLAIMED_AT_ONCE);
      const parts = await Promise.allSettled(sizes.map((size) => this.#claimSome(worker, size)));
      const answered = parts.flatMap((part) => (part.status === "fulfilled" ? [part.value] : []));
      for (const part of answered) claims.push(...part.claims);
      // What is here already must not wait for the end of its leases, whatever became of the others.
      hasMore = answered.length === parts.length && answered.every((part) => part.hasMore);
    }
    return claims;
  }

  async #claimSome(worker: string, limit: number) {
    const { ledger, restorer, watch, log } = this.#parts;
    const lines = watch.lines.flatMap((name) => [name, costOf(name)]);
    const options = [worker, this.queue.lease.ms, limit, MESSAGE_BYTES_MAX, await ledger.id()];
    const answer = await this.#run(CLAIM, [...options, ...lines]).catch((error) => {
      this.#unsure.add(worker);
      throw error;
    });
    const [isKnown, hasMore, buried, values] = answer as [number, number, number, string[]];
    if (buried > 0) log.warn({ count: buried }, "malformed messages went to the dead letters");
    if (isKnown === 0) restorer.hurry();
    const { claims, malformed } = claimsOf(values);
    await this.#refuse(malformed);
    return { claims, hasMore: hasMore === 1 };
  }

  /** Jobs that nobody knows to have would wait for the end of their leases, and lose a try. */
  async #giveBackUnseen(worker: string): Promise<void> {
    if (!this.#unsure.has(worker)) return;
    await this.#run(GIVE_BACK, [worker, ...(this.#inHands.get(worker) ?? [])]);
    this.#unsure.delete(worker);
  }

  #letGo(keys: Iterable<Key>): void {
    for (const key of keys) for (const inHands of this.#inHands.values()) inHands.delete(key);
  }

  /** Claims that the ledger cannot be told of are given back: should Redis be emptied, nobody would know of them. */
  async #taken(claims: readonly JobClaim[], worker: string): Promise<JobClaim[]> {
    let done: Set<string>;
    try {
      done = await this.#parts.ledger.take(claims, worker);
    } catch (error) {
      await this.#decide(claims.map((claim) => ({ claim, outcome: { kind: "released" } })));
      throw error;
    }
    const known = claims.filter(({ key }) => done.has(key));
    if (known.length > 0) await this.#decide(known.map((claim) => ({ claim, outcome: { kind: "done" } })));
    const taken = done.size === 0 ? [...claims] : claims.filter(({ key }) => !done.has(key));
    const inHands = this.#inHands.get(worker) ?? new Set();
    for (const { key } of taken) inHands.add(key);
    this.#inHands.set(worker, inHands);
    return taken;
  }

  async #refuse(malformed: readonly { claim: Claim<object>; problem: string }[]): Promise<void> {
    const { log } = this.#parts;
    for (const { claim, problem } of malformed) {
      const reason = `malformed message: ${problem}`;
      log.warn({ job: claim.key, problem }, "a malformed message went to the dead letters");
      await this.#run(REPORT, [claim.key, claim.token, ...Object.entries(MALFORMED).flat()]);
      await this.#decide([{ claim, outcome: { kind: "failed", reason } }]);
    }
  }

  async settle(settlements: readonly Settlement[], options: SettleOptions = {}): Promise<Verdict[]> {
    if (settlements.length === 0) return [];
    const decided = settlements.map((settlement) => this.#checked(settlement));
    const verdicts = await this.#decide(decided, options);
    const written = decided.filter((_settlement, index) => verdicts[index] !== "lost");
    if (written.length > 0) await this.#parts.ledger.settle(written);
    this.#letGo(settlements.map(({ claim }) => claim.key));
    return verdicts;
  }

  /** The wait of a retry is chosen once, for Redis and the ledger alike. */
  #checked({ claim, outcome }: Settlement): Settlement {
    switch (outcome.kind) {
      case "done":
        if (outcome.also)
          throw new QuarryError(
            "invalid_input",
            `queue ${this.queue.name} is kept in Redis: write before returning done, in a way that can be repeated`,
          );
        for (const name of Object.keys(outcome.result ?? {})) {
          if (this.queue.results.includes(name)) continue;
          throw new QuarryError(
            "invalid_input",
            `queue ${this.queue.name} declares no result column ${name}`,
          );
        }
        return { claim, outcome };
      case "retry": {
        const delayMs = outcome.delayMs ?? this.queue.retry.delayMs(claim.attempt, Math.random);
        return { claim, outcome: { kind: "retry", reason: errorText(outcome.reason), delayMs } };
      }
      case "failed":
        return { claim, outcome: { kind: "failed", reason: errorText(outcome.reason) } };
      case "released":
        return { claim, outcome };
      default:
        return outcome satisfies never;
    }
  }

  async #decide(
    settlements: readonly Settlement[],
    { isRepeat = false }: SettleOptions = {},
  ): Promise<Verdict[]> {
    const parts = inSizes(settlements.length, SETTLED_AT_ONCE).map((size, index) => {
      const args: (string | number)[] = [isRepeat ? "1" : ""];
      const start = index * SETTLED_AT_ONCE;
      for (const { claim, outcome } of settlements.slice(start, start + size))
        args.push(...decisionArgs(claim, outcome));
      return this.#run(SETTLE, args) as Promise<Verdict[]>;
    });
    return (await Promise.all(parts)).flat();
  }

  async release(claims: readonly Claim<object>[], options: { delayMs?: number } = {}): Promise<number> {
    const outcome: Outcome = { kind: "released", ...options };
    const verdicts = await this.settle(claims.map((claim) => ({ claim, outcome })));
    return verdicts.filter((verdict) => verdict === "released").length;
  }

  async extend(claims: readonly Claim<object>[]): Promise<Set<Key>> {
    const kept = await this.#held(EXTEND, claims, this.queue.lease.ms);
    this.#letGo(claims.map(({ key }) => key).filter((key) => !kept.has(key)));
    return kept;
  }

  stillHeld(claims: readonly Ticket[]): Promise<Set<Key>> {
    return this.#held(LOOK, claims, 0);
  }

  async #held(script: Script, claims: readonly Ticket[], leaseMs: number): Promise<Set<Key>> {
    const kept = new Set<Key>();
    for (let start = 0; start < claims.length; start += SETTLED_AT_ONCE) {
      const tickets = claims.slice(start, start + SETTLED_AT_ONCE).flatMap(({ key, token }) => [key, token]);
      for (const key of (await this.#run(script, [leaseMs, ...tickets])) as string[]) kept.add(key);
    }
    return kept;
  }

  async rescueStale({ limit = SWEEP_LIMIT } = {}): Promise<Rescued[]> {
    const values = (await this.#run(RESCUE, [limit])) as string[];
    const rescued: (Rescued & Settlement)[] = [];
    for (let at = 0; at < values.length; at += 5) {
      const [key, token, attempt, isFailed, reason] = values.slice(at, at + 5) as [
        string,
        string,
        string,
        string,
        string,
      ];
      const claim = { key, token: Number(token), attempt: Number(attempt), attemptsMax: 0, row: {} };
      const outcome: Outcome = isFailed ? { kind: "failed", reason } : { kind: "retry", reason, delayMs: 0 };
      rescued.push({ key, isFailed: isFailed !== "", claim, outcome });
    }
    await this.#parts.ledger.settle(rescued);
    return rescued.map(({ key, isFailed }) => ({ key, isFailed }));
  }

  async expireLeases(workers: readonly string[]): Promise<number> {
    if (workers.length === 0) return 0;
    return Number(await this.#run(EXPIRE, workers));
  }

  async promoteDelayed({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    return Number(await this.#run(PROMOTE, [limit]));
  }

  async nextDueMs(): Promise<number | undefined> {
    const ms = await this.#run(NEXT_DUE, []);
    return ms === null ? undefined : Number(ms);
  }

  /** Hashes go by themselves. Dead letters and the ledger do not. */
  async prune(options: PruneOptions): Promise<number> {
    const { failedOlderThanMs: ageMs, limit = SWEEP_LIMIT } = options;
    const forgotten = ageMs === undefined ? 0 : Number(await this.#run(FORGET_DEAD, [ageMs, limit]));
    return Math.max(forgotten, await this.#parts.ledger.prune(options));
  }

  async repair({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    await this.#parts.ledger.flush();
    await this.#parts.watch.findLines();
    return this.#parts.restorer.lookOn(limit);
  }

  #run(script: Script, args: readonly (string | number)[]): Promise<unknown> {
    return this.#parts.link.run(script, [this.#parts.now(), ...args]);
  }
}

/** 600 in parts of 250: 250, 250, 100. */
function inSizes(count: number, most: number): number[] {
  return Array.from({ length: Math.ceil(count / most) }, (_, part) => Math.min(most, count - part * most));
}

function claimsOf(values: readonly string[]) {
  const claims: JobClaim[] = [];
  const malformed: { claim: Claim<object>; problem: string }[] = [];
  for (let at = 0; at < values.length; at += 6) {
    const key = values[at]!;
    const list = values[at + 4]!;
    const message = values[at + 5]!;
    const ticket = {
      key,
      token: Number(values[at + 1]),
      attempt: Number(values[at + 2]),
      attemptsMax: Number(values[at + 3]),
    };
    const { job, problem } = readMessage(message);
    if (job) claims.push({ ...ticket, list, row: { message, job } });
    else malformed.push({ claim: { ...ticket, row: {} }, problem });
  }
  return { claims, malformed };
}

function decisionArgs({ key, token }: Ticket, outcome: Outcome): (string | number)[] {
  switch (outcome.kind) {
    case "done":
      return outcome.result
        ? ["done with", key, token, 0, JSON.stringify(outcome.result)]
        : [outcome.kind, key, token];
    case "retry":
      return [outcome.kind, key, token, outcome.delayMs ?? 0, outcome.reason];
    case "failed":
      return [outcome.kind, key, token, 0, outcome.reason];
    case "released":
      return [outcome.kind, key, token, outcome.delayMs ?? 0, ""];
    default:
      return outcome satisfies never;
  }
}
