import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { type Claim, done, failed, type Outcome, released, retry, type Verdict } from "../../src/index.ts";
import type { JobMessage } from "../../src/rag/message.ts";
import { aMessage, LEASE_MS, PLACES, type Place } from "./places.ts";

const OUTCOMES: readonly Outcome[] = [
  ...[done(), done({ chunks_created: 3 }), retry("x", 0), retry("x")],
  ...[failed("x"), released(), released(3_000)],
];
const WORKERS = 3;

type Command =
  | { do: "submit"; line: number; maxRetries: number }
  | { do: "submitAgain" | "pushAgain" | "extend" | "redrive"; pick: number }
  | { do: "claim"; worker: number; limit: number }
  | { do: "settle"; pick: number; outcome: number; isRepeat: boolean }
  | { do: "tick"; ms: number }
  | { do: "rescue" | "promote" | "redriveAll" | "repair" }
  | { do: "expire"; worker: number };

const nat = (max: number) => fc.nat({ max });
const one = <T extends object>(weight: number, shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
  weight,
  arbitrary: fc.record(shape) as unknown as fc.Arbitrary<Command>,
});
const named = <const Name extends string>(...names: Name[]) => fc.constantFrom(...names);
const command: fc.Arbitrary<Command> = fc.oneof(
  one(4, { do: named("submit"), line: nat(4), maxRetries: fc.integer({ min: 0, max: 3 }) }),
  one(2, { do: named("submitAgain", "pushAgain", "extend", "redrive"), pick: nat(99) }),
  one(6, { do: named("claim"), worker: nat(WORKERS - 1), limit: fc.integer({ min: 1, max: 4 }) }),
  one(7, { do: named("settle"), pick: nat(99), outcome: nat(OUTCOMES.length - 1), isRepeat: fc.boolean() }),
  one(3, { do: named("tick"), ms: fc.constantFrom(1, 3_000, 5_000, 10_000, LEASE_MS + 1) }),
  one(4, { do: named("rescue", "promote", "redriveAll", "repair") }),
  one(1, { do: named("expire"), worker: nat(WORKERS - 1) }),
);

interface ModelJob {
  readonly message: JobMessage;
  state: "queued" | "delayed" | "processing" | "done" | "failed";
  retryCount: number;
  token: number;
  worker: string;
  leaseEndsAt: number;
  dueAt: number;
  /** Tokens whose settlement was accepted. */
  readonly settled: Map<number, { outcome: Outcome; verdict: Verdict }>;
}

/** Runs commands against a queue and a model of it that is small enough to be obviously right. */
class Run {
  readonly #place: Place;
  readonly #jobs = new Map<string, ModelJob>();
  /** Every claim ever made, so that commands can use stale ones too. */
  readonly #claims: Claim<object>[] = [];
  readonly #gone = new Set<string>();

  constructor(place: Place) {
    this.#place = place;
  }

  get #store() {
    return this.#place.queue.store;
  }

  async do(step: Command): Promise<void> {
    switch (step.do) {
      case "submit":
        return this.#submit(step.line, step.maxRetries);
      case "submitAgain":
        return this.#submitAgain(step.pick);
      case "pushAgain":
        return this.#pushAgain(step.pick);
      case "claim":
        return this.#claim(`w${step.worker}`, step.limit);
      case "settle":
        return this.#settle(step.pick, OUTCOMES[step.outcome]!, step.isRepeat);
      case "extend":
        return this.#extend(step.pick);
      case "tick":
        return void this.#place.clock.advance(step.ms);
      case "rescue":
        return this.#rescue();
      case "promote":
        return this.#promote();
      case "repair":
        return assert.equal(await this.#store.repair(), 0, "something was mended that was not broken");
      case "redrive":
        return this.#redrive(this.#pick(step.pick));
      case "redriveAll":
        return this.#redrive(undefined);
      case "expire":
        return this.#expire(`w${step.worker}`);
      default:
        return step satisfies never;
    }
  }

  /** Every job is in one place, and says what the model says. */
  async check(): Promise<void> {
    for (const [id, job] of this.#jobs) {
      assert.deepEqual(await this.#place.whereabouts(id), [job.state], id);
      const status = await this.#place.queue.read(id);
      assert.equal(status!.retry_count, job.retryCount);
      assert.equal(status!.status, job.state === "delayed" ? "queued" : job.state);
    }
    const count = (...states: string[]) =>
      [...this.#jobs.values()].filter(({ state }) => states.includes(state)).length;
    const { length, processing, queued, delayed } = await this.#place.queue.counts();
    const counts = { length, processing, queued, delayed };
    assert.deepEqual(counts, {
      length: count("queued", "delayed", "processing"),
      queued: count("queued", "delayed"),
      processing: count("processing"),
      delayed: count("delayed"),
    });
  }

  get #now(): number {
    return this.#place.clock.now();
  }

  #pick(number: number): ModelJob | undefined {
    const all = [...this.#jobs.values()];
    return all[number % Math.max(1, all.length)];
  }

  async #submit(line: number, maxRetries: number): Promise<void> {
    const message = aMessage(this.#place, { max_retries: maxRetries });
    const options = [
      {},
      { priority: "high" },
      { priority: "normal" },
      { priority: "low" },
      { own: true },
    ] as const;
    assert.equal(await this.#place.queue.submit(message, options[line]), "queued");
    this.#jobs.set(message.job_id, {
      ...{ message, state: "queued", retryCount: 0, token: 0, worker: "", leaseEndsAt: 0, dueAt: 0 },
      settled: new Map(),
    });
  }

  async #submitAgain(pick: number): Promise<void> {
    const job = this.#pick(pick);
    if (!job) return;
    const isNew = job.state === "failed";
    assert.equal(await this.#place.queue.submit(job.message), isNew ? "queued" : "known");
    if (isNew) Object.assign(job, { state: "queued", retryCount: 0 });
  }

  /** Only where anybody can push: a second copy of an open job in line must come to nothing. */
  async #pushAgain(pick: number): Promise<void> {
    const job = this.#pick(pick);
    if (!job || !this.#place.redis || job.state === "failed" || job.state === "queued") return;
    await this.#place.push(JSON.stringify(job.message));
    const before = this.#claims.length;
    await this.#claim("w0", 10);
    const again = this.#claims.slice(before).some(({ key }) => key === job.message.job_id);
    assert.equal(again, false, "a job that was pushed twice ran twice");
  }

  async #claim(worker: string, limit: number): Promise<void> {
    const waiting = [...this.#jobs.values()].filter(({ state }) => state === "queued").length;
    const claims = await this.#store.claim({ worker, limit });
    assert.equal(claims.length, Math.min(limit, waiting));
    for (const claim of claims) {
      const job = this.#jobs.get(String(claim.key))!;
      assert.equal(job.state, "queued");
      assert.ok(claim.token > job.token, "a token did not rise");
      assert.equal(claim.attempt, job.retryCount + 1);
      Object.assign(job, {
        state: "processing",
        worker,
        token: claim.token,
        leaseEndsAt: this.#now + LEASE_MS,
      });
      this.#claims.push(claim);
      this.#gone.delete(worker);
    }
  }

  async #settle(pick: number, outcome: Outcome, isRepeat: boolean): Promise<void> {
    const claim = this.#claims[this.#claims.length - 1 - (pick % Math.max(1, this.#claims.length))];
    if (!claim) return;
    const job = this.#jobs.get(String(claim.key))!;
    const isHeld = job.state === "processing" && job.token === claim.token;
    const [verdict] = await this.#store.settle([{ claim, outcome }], { isRepeat });
    if (isHeld) {
      const expected = this.#apply(job, outcome);
      assert.equal(verdict, expected);
      assert.ok(!job.settled.has(claim.token), "a token settled twice");
      job.settled.set(claim.token, { outcome, verdict: expected });
      return;
    }
    if (!isRepeat) assert.equal(verdict, "lost");
    else if (verdict !== "lost")
      assert.ok(job.settled.has(claim.token), "a settlement was recognised that never was");
  }

  #apply(job: ModelJob, outcome: Outcome): Verdict {
    const wait = (delayMs: number) =>
      Object.assign(job, { state: delayMs > 0 ? "delayed" : "queued", dueAt: this.#now + delayMs });
    switch (outcome.kind) {
      case "done":
        job.state = "done";
        return "done";
      case "released":
        wait(outcome.delayMs ?? 0);
        return "released";
      case "failed":
        Object.assign(job, { state: "failed", retryCount: job.retryCount + 1 });
        return "failed";
      case "retry": {
        job.retryCount++;
        if (job.retryCount >= job.message.max_retries) {
          job.state = "failed";
          return "failed";
        }
        wait(outcome.delayMs ?? [5_000, 10_000, 30_000][Math.min(job.retryCount, 3) - 1]!);
        return "retrying";
      }
      default:
        return outcome satisfies never;
    }
  }

  async #extend(pick: number): Promise<void> {
    const claim = this.#claims[pick % Math.max(1, this.#claims.length)];
    if (!claim) return;
    const job = this.#jobs.get(String(claim.key))!;
    const isHeld = job.state === "processing" && job.token === claim.token;
    assert.equal((await this.#store.extend([claim])).has(claim.key), isHeld);
    if (isHeld) job.leaseEndsAt = this.#now + LEASE_MS;
  }

  async #rescue(): Promise<void> {
    const stale = [...this.#jobs.values()].filter(
      (job) => job.state === "processing" && job.leaseEndsAt < this.#now,
    );
    const rescued = await this.#store.rescueStale();
    assert.deepEqual(rescued.map(({ key }) => key).sort(), stale.map(({ message }) => message.job_id).sort());
    for (const { key, isFailed } of rescued) {
      const verdict = this.#apply(this.#jobs.get(String(key))!, retry("died", 0));
      assert.equal(isFailed, verdict === "failed");
    }
  }

  async #expire(worker: string): Promise<void> {
    const held = [...this.#jobs.values()].filter(
      (job) => job.state === "processing" && job.worker === worker,
    );
    assert.equal(await this.#store.expireLeases([worker]), held.length);
    for (const job of held) job.leaseEndsAt = Number.NEGATIVE_INFINITY;
  }

  async #promote(): Promise<void> {
    const due = [...this.#jobs.values()].filter((job) => job.state === "delayed" && job.dueAt <= this.#now);
    assert.equal(await this.#store.promoteDelayed(), due.length);
    for (const job of due) job.state = "queued";
  }

  async #redrive(job: ModelJob | undefined): Promise<void> {
    const dead = (job ? [job] : [...this.#jobs.values()]).filter(({ state }) => state === "failed");
    if (job === undefined && dead.length === 0 && this.#jobs.size === 0) return;
    const which = job ? { ids: [job.message.job_id] } : "all";
    assert.equal(await this.#place.queue.redrive(which), dead.length);
    for (const one of dead) Object.assign(one, { state: "queued", retryCount: 0 });
  }
}

for (const { name, open } of PLACES) {
  describe(`random lives of jobs on ${name}`, () => {
    let place: Place;
    before(async () => {
      place = await open();
    });
    after(() => place.close());

    it("every job is in exactly one place, tokens only rise, and each is settled once", async () => {
      const commands = fc.array(command, { minLength: 5, maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(commands, async (steps) => {
          await place.reset();
          const run = new Run(place);
          for (const step of steps) {
            await run.do(step);
            await run.check();
          }
        }),
        { numRuns: Number(process.env.MODEL_RUNS ?? 15) },
      );
    });
  });
}
