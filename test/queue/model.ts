import type { Claim, Key, Outcome, Queue } from "../../src/index.ts";

/** One row as plain data. */
export interface ModelRow {
  readonly key: Key;
  readonly order: number;
  status: "pending" | "running" | "done" | "failed" | "retrying" | "cancelled";
  attempts: number;
  token: number;
  dueAt: number | undefined;
  leaseEndsAt: number | undefined;
}

/**
 * The engine's rules in fifty lines of plain code, without SQL, batches or clocks of its own. The model tests run
 * the same commands against this and against a database and compare every row after every step.
 */
export class QueueModel {
  readonly rows = new Map<Key, ModelRow>();
  readonly #queue: Queue;
  readonly #attemptsMax = 3;
  #order = 0;
  nowMs = 0;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  submit(key: Key, delayMs: number, token: number): void {
    const dueAt = delayMs > 0 ? this.nowMs + delayMs : undefined;
    this.rows.set(key, {
      key,
      order: this.#order++,
      status: "pending",
      attempts: 0,
      token,
      dueAt,
      leaseEndsAt: undefined,
    });
  }

  claim(limit: number): Claim<object>[] {
    const ready = [...this.rows.values()].filter((row) => this.#isWaiting(row) && row.dueAt === undefined);
    ready.sort(
      (a, b) => this.#rank(a) - this.#rank(b) || this.#retries(a) - this.#retries(b) || a.order - b.order,
    );
    return ready.slice(0, limit).map((row) => {
      row.status = "running";
      row.token++;
      row.leaseEndsAt = this.nowMs + this.#queue.lease.ms;
      const attempt = row.attempts + 1;
      if (this.#countsClaims) row.attempts++;
      return { key: row.key, token: row.token, attempt, attemptsMax: this.#attemptsMax, row: {} };
    });
  }

  beat(claim: Claim<object>): boolean {
    const row = this.#heldRow(claim);
    if (row) row.leaseEndsAt = this.nowMs + this.#queue.lease.ms;
    return row !== undefined;
  }

  settle(claim: Claim<object>, outcome: Outcome): boolean {
    const row = this.#heldRow(claim);
    if (!row) return false;
    row.leaseEndsAt = undefined;
    if (outcome.kind === "done") row.status = "done";
    else if (outcome.kind === "released") {
      row.status = "pending";
      if (this.#countsClaims) row.attempts--;
      row.dueAt = outcome.delayMs ? this.nowMs + outcome.delayMs : undefined;
    } else this.#fail(row, outcome.kind === "failed", outcome.kind === "retry" ? (outcome.delayMs ?? 0) : 0);
    return true;
  }

  rescue(): number {
    const stale = [...this.rows.values()].filter(
      (row) => row.status === "running" && row.leaseEndsAt! < this.nowMs,
    );
    for (const row of stale) {
      if (!this.#countsClaims) row.attempts++;
      row.status = row.attempts >= this.#attemptsMax ? "failed" : "pending";
      row.token++;
      row.leaseEndsAt = undefined;
    }
    return stale.length;
  }

  promote(): number {
    const due = [...this.rows.values()].filter((row) => row.dueAt !== undefined && row.dueAt <= this.nowMs);
    for (const row of due) row.dueAt = undefined;
    return due.length;
  }

  retry(key: Key): boolean {
    const row = this.rows.get(key);
    const isStopped =
      row &&
      (row.status === "failed" ||
        row.status === "cancelled" ||
        (this.#isWaiting(row) && row.dueAt !== undefined));
    if (!isStopped) return false;
    Object.assign(row, { status: "pending", attempts: 0, dueAt: undefined });
    row.token++;
    return true;
  }

  cancel(key: Key): "cancelled" | "aborted" | "too_late" | "not_found" {
    const row = this.rows.get(key);
    if (!row) return "not_found";
    if (!this.#isWaiting(row) && row.status !== "running") return "too_late";
    const verdict = row.status === "running" ? "aborted" : "cancelled";
    if (this.#queue.statuses.cancelled === undefined) this.rows.delete(key);
    else {
      Object.assign(row, { status: "cancelled", dueAt: undefined, leaseEndsAt: undefined });
      row.token++;
    }
    return verdict;
  }

  /** The status as this queue's table spells it. */
  word(row: ModelRow): string {
    return this.#queue.statuses[row.status]!;
  }

  get #countsClaims(): boolean {
    return this.#queue.attempts.count === "claims";
  }

  get #isFailedRetried(): boolean {
    return this.#queue.statuses.retrying === this.#queue.statuses.failed;
  }

  #isWaiting(row: ModelRow): boolean {
    return row.status === "pending" || row.status === "retrying";
  }

  #rank(row: ModelRow): number {
    return this.#isFailedRetried && row.status === "retrying" ? 0 : 1;
  }

  #retries(row: ModelRow): number {
    return this.#isFailedRetried ? row.attempts : 0;
  }

  #heldRow(claim: Claim<object>): ModelRow | undefined {
    const row = this.rows.get(claim.key);
    return row?.status === "running" && row.token === claim.token ? row : undefined;
  }

  #fail(row: ModelRow, isFatal: boolean, delayMs: number): void {
    if (!this.#countsClaims) row.attempts++;
    if (isFatal || row.attempts >= this.#attemptsMax) {
      row.status = "failed";
      if (this.#isFailedRetried) row.attempts = this.#attemptsMax;
    } else {
      row.status = "retrying";
      row.dueAt = delayMs > 0 ? this.nowMs + delayMs : undefined;
    }
  }
}
