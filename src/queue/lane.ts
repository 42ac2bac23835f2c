import { atMost, type Clock } from "../clock.ts";
import { messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Telemetry } from "../telemetry.ts";
import type { Queue } from "./declaration.ts";
import { Held, type Task } from "./held.ts";
import { CLAIM_MAX, type LaneStore } from "./lane-store.ts";
import { type LaneWait, WaitWatch } from "./lane-wait.ts";
import { Leases } from "./leases.ts";
import type { StoreOutages } from "./outage.ts";
import type { Claim, Outcome, Verdict } from "./outcome.ts";
import { type Settled, Settlements } from "./settlements.ts";

/** A queue, what is done with its rows, and how many at once. */
export interface LaneDeclaration<Payload extends object = Record<string, unknown>> {
  readonly queue: Queue<Payload>;
  /** Where its rows are kept, when that is not a table of the worker's database. */
  readonly store?: LaneStore<Payload>;
  /** Works on one row. Returning nothing means done; throwing means retry. */
  handle?(task: Task<Payload>): MaybeOutcome | Promise<MaybeOutcome>;
  /** Works on several rows at once and returns an outcome for each, in their order. */
  handleBatch?(tasks: readonly Task<Payload>[]): Promise<readonly MaybeOutcome[]>;
  /** How many handlers run at once. */
  readonly concurrency?: number;
  /** For `handleBatch`: how many rows it is given at most. */
  readonly batchSize?: number;
  /** A handler that takes longer is aborted and its row retried. */
  readonly deadlineMs?: number;
  /** The most rows held in advance, when tasks are short. */
  readonly prefetchMax?: number;
  readonly pollMs?: number;
  /** Its handlers mostly wait for other lanes, which stop with this one: they are given back at once. */
  readonly isWaitingForOthers?: boolean;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement means "done".
export type MaybeOutcome = Outcome | undefined | void;

/** Takes the payload's type from the queue, so that lanes of different queues can stand in one list. */
export function defineLane<Payload extends object>(
  declaration: LaneDeclaration<Payload>,
): LaneDeclaration<object> {
  return declaration as LaneDeclaration<object>;
}

export interface LaneStats {
  readonly claimed: number;
  readonly settled: Readonly<Record<Verdict, number>>;
  readonly running: number;
  readonly waiting: number;
}

interface LaneEnvironment {
  readonly worker: string;
  readonly store: LaneStore<object>;
  readonly clock: Clock;
  readonly log: Log;
  readonly telemetry: Telemetry | undefined;
  readonly outages: StoreOutages;
  /** It begins to wait for what is away, or goes on. */
  readonly onWait: () => void;
}

/** Rows are held in advance for about this much work: enough to hide a round trip, too little to hoard. */
const PREFETCH_HORIZON_MS = 100;
const PREFETCH_DEFAULT_MAX = 1_000;
/** As much as is worked off in this time is claimed at once: a longer claim would hold up an embedded database's process. */
const CLAIM_HORIZON_MS = 10;
const POLL_DEFAULT_MS = 1_000;
const PROMOTE_AGAIN_MS = 50;
const ERROR_PAUSE_MAX_MS = 5_000;
/** A handler that ignores its deadline is given this long, then its row goes on without it. */
const DEADLINE_GRACE_MS = 1_000;

type State = "running" | "paused" | "stopping" | "stopped";

/**
 * Claims rows, runs handlers and hands outcomes to be settled. Everything happens in `#pump`, which is called
 * whenever something changed: rows arrived, a handler ended, a wake-up or a poll came.
 */
export class Lane {
  readonly #declaration: LaneDeclaration<object>;
  readonly #environment: LaneEnvironment;
  readonly #settlements: Settlements;
  readonly #leases: Leases;
  readonly #waits: WaitWatch;
  #waiting: Held[] = [];
  #nextWaiting = 0;
  #running = 0;
  #claimed = 0;
  #state: State = "running";
  #isClaiming = false;
  #isPumping = false;
  /** Something may be there to claim: set by wake-ups, polls and full claims. */
  #mayHaveMore = true;
  /** The last claim was as large as it was asked to be. */
  #wasFull = false;
  #taskMs = Number.POSITIVE_INFINITY;
  #errors = 0;
  #isPromoting = false;
  #promotedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #onIdle: (() => void) | undefined;
  /** What runs may still finish when the lane stops. */
  #hasGrace = true;

  constructor(declaration: LaneDeclaration<object>, environment: LaneEnvironment) {
    if (Boolean(declaration.handle) === Boolean(declaration.handleBatch)) {
      throw new QuarryError(
        "invalid_declaration",
        `lane ${declaration.queue.name}: give either handle or handleBatch`,
      );
    }
    for (const count of [declaration.concurrency ?? 1, declaration.batchSize ?? 1]) {
      if (Number.isInteger(count) && count >= 1) continue;
      throw new QuarryError(
        "invalid_declaration",
        `lane ${declaration.queue.name}: concurrency and batchSize are whole numbers from 1`,
      );
    }
    this.#declaration = declaration;
    this.#environment = environment;
    this.#waits = new WaitWatch(declaration.queue.name, environment);
    this.#settlements = new Settlements({
      store: environment.store,
      outages: environment.outages,
      onWriting: () => this.#claimMore(),
      onSettled: (settled) => this.#settled(settled),
    });
    this.#leases = new Leases({
      ...environment,
      onLost: (held, wasWaiting) => {
        this.#settlements.verdicts.lost++;
        if (wasWaiting) this.#forget(held);
      },
    });
  }

  get queue(): Queue<object> {
    return this.#declaration.queue;
  }

  get stats(): LaneStats {
    return {
      claimed: this.#claimed,
      settled: { ...this.#settlements.verdicts },
      running: this.#running,
      waiting: this.#waitingCount,
    };
  }

  /** What its tasks wait for. */
  get wait(): LaneWait | undefined {
    return this.#waits.wait;
  }

  get isIdle(): boolean {
    return this.#leases.size === 0 && !this.#isClaiming;
  }

  start(): void {
    this.#unsubscribe = this.#environment.store.subscribe({
      onWork: () => this.wake(),
      onCancel: () => this.#leases.lookSoon(),
    });
    this.#pump();
  }

  wake(): void {
    this.#mayHaveMore = true;
    this.#pump();
  }

  /** Stops claiming and gives back what has not begun; what runs goes on. */
  async pause(): Promise<void> {
    if (this.#state !== "running") return;
    this.#state = "paused";
    await this.#releaseWaiting();
  }

  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    this.wake();
  }

  /**
   * Claims nothing more and gives back what has not begun. What runs may finish until `graceMs` have passed, unless it
   * waits for what stops too; then it is aborted and given back: no attempt is spent.
   */
  async stop(graceMs: number): Promise<void> {
    this.#state = "stopping";
    this.#unsubscribe?.();
    clearTimeout(this.#timer);
    this.#leases.stopLooking();
    await atMost(graceMs, this.#releaseWaiting());
    if (this.#hasGrace && !this.#declaration.isWaitingForOthers) await this.#untilIdle(graceMs);
    this.#hasGrace = false;
    this.#leases.abortAll("the worker is stopping");
    await this.#untilIdle(Math.min(graceMs, DEADLINE_GRACE_MS));
    for (const held of this.#leases.all)
      if (held.state === "running") this.#finish(held, { kind: "released" });
    this.#settlements.hurry();
    await this.#untilIdle(DEADLINE_GRACE_MS);
    this.#state = "stopped";
    this.#settlements.stop();
  }

  /** Cuts the grace of a stop short: what runs is aborted and given back now. */
  hurry(): void {
    if (!this.#hasGrace) return;
    this.#hasGrace = false;
    this.#onIdle?.();
  }

  /** Ends at once. Leases run out by themselves; what handlers still return is discarded. */
  kill(): void {
    this.#state = "stopped";
    this.#unsubscribe?.();
    clearTimeout(this.#timer);
    this.#leases.stopLooking();
    this.#settlements.stop();
    this.#leases.abortAll("the worker was stopped");
    this.#onIdle?.();
  }

  /** Renews every lease of the lane. */
  beat(): Promise<void> {
    return this.#leases.renew();
  }

  dropExpired(): void {
    this.#leases.dropExpired();
  }

  get #waitingCount(): number {
    return this.#waiting.length - this.#nextWaiting;
  }

  get #concurrency(): number {
    return this.#declaration.concurrency ?? 10;
  }

  get #batchSize(): number {
    return this.#declaration.handleBatch ? (this.#declaration.batchSize ?? 50) : 1;
  }

  /** How many rows to hold beyond those that run. Long tasks give 0. */
  get #prefetch(): number {
    const max = this.#declaration.prefetchMax ?? PREFETCH_DEFAULT_MAX;
    return Math.min(max, Math.floor(PREFETCH_HORIZON_MS * this.#rowsPerMs));
  }

  get #rowsPerMs(): number {
    return (this.#concurrency * this.#batchSize) / this.#taskMs;
  }

  /** Handlers that end at once come back here while the loop still runs; it goes on for them. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#state === "running" && this.#running < this.#concurrency && this.#canStart())
      this.#startNext();
    this.#isPumping = false;
    if (!this.#settlements.isAboutToWrite) this.#claimMore();
    if (this.isIdle) this.#onIdle?.();
  }

  #claimMore(): void {
    if (this.#state === "running" && !this.#isClaiming && this.#mayHaveMore) void this.#claim();
  }

  /** A batch handler waits for a full batch while more rows may be on their way. */
  #canStart(): boolean {
    const count = this.#waitingCount;
    return count >= this.#batchSize || (count > 0 && !this.#isClaiming);
  }

  #wanted(): number {
    const free = (this.#concurrency - this.#running) * this.#batchSize;
    const target = free + this.#prefetch;
    const missing = target - this.#waitingCount;
    // Refill in large steps, of half of all or of what the horizon asks for: a claim has a price of its own.
    const step = Math.max(this.#batchSize, Math.ceil(CLAIM_HORIZON_MS * this.#rowsPerMs));
    return missing >= Math.min(target / 2, step) ? Math.min(missing, Math.max(free, step)) : 0;
  }

  async #claim(): Promise<void> {
    const { store, worker, clock, outages } = this.#environment;
    const backlogMax =
      2 * ((this.#declaration.prefetchMax ?? PREFETCH_DEFAULT_MAX) + this.#concurrency * this.#batchSize);
    const limit = Math.min(this.#wanted(), backlogMax - this.#settlements.unwritten, CLAIM_MAX);
    if (limit < 1) return;
    this.#isClaiming = true;
    this.#mayHaveMore = false;
    const askedAt = clock.monotonic();
    try {
      const claims = await store.claim({ worker, limit, isExpected: this.#wasFull });
      outages.pass(this.queue.name);
      this.#errors = 0;
      this.#claimed += claims.length;
      this.#wasFull = claims.length === limit;
      this.#take(claims, askedAt);
      if (!this.#wasFull) this.#lookAgainLater();
      else {
        this.#mayHaveMore = true;
        // Rows that fall due must not wait for the backlog to end.
        if (askedAt - this.#promotedAt >= this.#pollMs) void this.#promoteDue();
      }
    } catch (error) {
      outages.meet(error, { queue: this.queue.name }, "claiming failed");
      this.#lookAgainIn(Math.min(ERROR_PAUSE_MAX_MS, 50 * 2 ** this.#errors++) * (0.5 + Math.random()));
    } finally {
      this.#isClaiming = false;
    }
    if (this.#state === "running") this.#pump();
    else {
      await this.#releaseWaiting();
      // Nothing may have come back: whoever waits for the lane to be idle must still hear of it.
      if (this.isIdle) this.#onIdle?.();
    }
  }

  #take(claims: readonly Claim<object>[], askedAt: number): void {
    if (this.#nextWaiting > 0) {
      this.#waiting = this.#waiting.slice(this.#nextWaiting);
      this.#nextWaiting = 0;
    }
    for (const claim of claims) {
      const held = new Held(claim, askedAt + this.queue.lease.ms);
      this.#leases.add(held);
      this.#waiting.push(held);
    }
  }

  #lookAgainLater(): void {
    this.#lookAgainIn(this.#pollMs * (0.8 + 0.4 * Math.random()));
    void this.#promoteDue();
  }

  #lookAgainIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#state === "stopping" || this.#state === "stopped") return;
    this.#timer = setTimeout(() => this.wake(), ms);
  }

  get #pollMs(): number {
    return this.#declaration.pollMs ?? POLL_DEFAULT_MS;
  }

  /** Delayed rows become claimable here, so that a retry starts when it is due and not a poll later. */
  async #promoteDue(): Promise<void> {
    const { store, log, clock } = this.#environment;
    if (this.#isPromoting) return;
    this.#isPromoting = true;
    try {
      this.#promotedAt = clock.monotonic();
      const dueMs = await store.nextDueMs();
      if (dueMs === undefined || dueMs >= this.#pollMs) return;
      if (dueMs > 0) this.#lookAgainIn(dueMs + 1);
      else if ((await store.promoteDelayed()) > 0) this.wake();
      // Somebody else is at it.
      else this.#lookAgainIn(PROMOTE_AGAIN_MS);
    } catch (error) {
      log.debug({ queue: this.queue.name, error: messageOf(error) }, "delayed rows could not be promoted");
    } finally {
      this.#isPromoting = false;
    }
  }

  #startNext(): void {
    const batch: Held[] = [];
    while (batch.length < this.#batchSize && this.#waitingCount > 0) {
      const held = this.#waiting[this.#nextWaiting++]!;
      if (held.state === "waiting") batch.push(held);
    }
    if (batch.length === 0) return;
    for (const held of batch) held.state = "running";
    this.#running++;
    this.#run(batch);
  }

  #run(batch: readonly Held[]): void {
    const { clock } = this.#environment;
    const startedAt = clock.monotonic();
    let isOver = false;
    const end = (outcomes: readonly MaybeOutcome[]) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(deadline);
      this.#running--;
      this.#learn(clock.monotonic() - startedAt);
      for (const [index, held] of batch.entries()) {
        const outcome = outcomes[index] ?? outcomeOfNothing(held);
        this.#waits.heed(outcome, startedAt);
        this.#finish(held, outcome);
      }
      this.#pump();
    };
    const fail = (error: unknown) => end(batch.map((held) => outcomeOfError(error, held)));
    const deadline = this.#armDeadline(batch, fail);
    try {
      const result = this.#callHandler(batch);
      if (isPromise(result)) result.then(end, fail);
      else end(result);
    } catch (error) {
      fail(error);
    }
  }

  #callHandler(batch: readonly Held[]): Promise<readonly MaybeOutcome[]> | MaybeOutcome[] {
    const { handle, handleBatch } = this.#declaration;
    const { telemetry } = this.#environment;
    if (telemetry) {
      const attributes = { "quarry.queue": this.queue.name, "quarry.tasks": batch.length };
      return telemetry.span("quarry.task", attributes, async () =>
        handle ? [await handle(batch[0]!)] : this.#checked(batch, await handleBatch!(batch)),
      );
    }
    if (!handle) return handleBatch!(batch).then((outcomes) => this.#checked(batch, outcomes));
    const result = handle(batch[0]!);
    return isPromise(result) ? Promise.resolve(result).then((outcome) => [outcome]) : [result];
  }

  /** An outcome too few would mark a row done that nobody looked at. */
  #checked(batch: readonly Held[], outcomes: readonly MaybeOutcome[]): readonly MaybeOutcome[] {
    if (outcomes?.length === batch.length) return outcomes;
    throw new QuarryError(
      "internal",
      `the handler of ${this.queue.name} was given ${batch.length} rows and returned ${outcomes?.length ?? "no"} outcomes`,
    );
  }

  /** A handler that does not end when it is aborted goes on without its row and without its place in the lane. */
  #armDeadline(batch: readonly Held[], fail: (error: unknown) => void): NodeJS.Timeout | undefined {
    const { deadlineMs } = this.#declaration;
    if (deadlineMs === undefined) return undefined;
    const reason = new QuarryError("timeout", `took longer than ${deadlineMs} ms`);
    return setTimeout(() => {
      for (const held of batch) held.abort(reason);
      setTimeout(() => fail(reason), DEADLINE_GRACE_MS).unref();
    }, deadlineMs);
  }

  #learn(tookMs: number): void {
    this.#taskMs = Number.isFinite(this.#taskMs) ? this.#taskMs * 0.9 + tookMs * 0.1 : tookMs;
  }

  #finish(held: Held, outcome: Outcome): void {
    if (held.state === "lost") this.#forget(held);
    if (held.state !== "running" || this.#state === "stopped") return;
    held.state = "settling";
    this.#settlements.add(held, OUTCOME_KINDS.has(outcome.kind) ? outcome : notAnOutcome(outcome));
  }

  #settled(settled: readonly Settled[]): void {
    const { telemetry } = this.#environment;
    for (const { held, verdict } of settled) {
      telemetry?.count("quarry.settled", 1, { "quarry.queue": this.queue.name, verdict });
      // It may be due at once, or before the next poll.
      if (verdict === "retrying" || verdict === "released") this.#mayHaveMore = true;
      this.#forget(held);
    }
    this.#pump();
  }

  #forget(held: Held): void {
    this.#leases.forget(held);
    if (this.#onIdle && this.isIdle) this.#onIdle();
  }

  async #releaseWaiting(): Promise<void> {
    const given = this.#waiting.slice(this.#nextWaiting).filter((held) => held.state === "waiting");
    this.#waiting = [];
    this.#nextWaiting = 0;
    if (given.length === 0) return;
    for (const held of given) held.state = "settling";
    const { store, outages } = this.#environment;
    try {
      await store.release(given);
    } catch (error) {
      // Their leases run out instead, which costs an attempt each.
      const fields = { queue: this.queue.name, count: given.length };
      outages.meet(error, fields, "claims could not be given back");
    }
    for (const held of given) this.#forget(held);
  }

  async #untilIdle(ms: number): Promise<void> {
    if (this.isIdle || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onIdle = undefined;
  }
}

const OUTCOME_KINDS: ReadonlySet<unknown> = new Set<Outcome["kind"]>(["done", "retry", "failed", "released"]);

function notAnOutcome(value: unknown): Outcome {
  const shown = JSON.stringify(value)?.slice(0, 100);
  return {
    kind: "retry",
    reason: `the handler returned ${shown}, which is no outcome: return done(), retry(), failed(), released() or nothing`,
  };
}

/** Returning nothing means done, unless the handler had been told to stop. */
function outcomeOfNothing(held: Held): Outcome {
  return held.abortReason ? outcomeOfError(held.abortReason, held) : { kind: "done" };
}

/** A handler that throws is retried; one that was stopped because the worker goes down gives its row back. */
function outcomeOfError(error: unknown, held: Held): Outcome {
  if (held.abortedBecause === "shutting_down") return { kind: "released" };
  if (held.abortedBecause === "timeout") return { kind: "retry", reason: messageOf(held.abortReason) };
  const name = error instanceof Error && error.name !== "Error" ? `${error.name}: ` : "";
  return { kind: "retry", reason: `${name}${messageOf(error)}` };
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === "function";
}
