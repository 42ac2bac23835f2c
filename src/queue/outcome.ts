import type { Transaction } from "../database/database.ts";
import type { Key } from "./roll-up.ts";

/** What says that a row was claimed: whoever shows it may write about the row. */
export interface Ticket {
  readonly key: Key;
  /** Raised by every claim. A write with an older token is refused. */
  readonly token: number;
}

/** A row that this worker may work on until its lease is lost. */
export interface Claim<Payload extends object = Record<string, unknown>> extends Ticket {
  /** 1 for the first try. */
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly row: Payload;
}

/** What became of a claim. Handlers return it; only the engine writes it down. */
export type Outcome =
  | {
      readonly kind: "done";
      /** Values for the columns that the queue declares as results. */
      readonly result?: Record<string, unknown>;
      /** Written in the transaction that settles the row, and only if the lease still held. */
      readonly also?: (transaction: Transaction) => Promise<void>;
    }
  | { readonly kind: "retry"; readonly reason: string; readonly delayMs?: number }
  | { readonly kind: "failed"; readonly reason: string }
  /** Given back untouched: costs no attempt. For waiting on something that is not this row's fault. */
  | {
      readonly kind: "released";
      readonly delayMs?: number;
      /** What is away that the row needs. It is not written down: the lane says it of itself. */
      readonly reason?: string;
    };

export interface Settlement {
  readonly claim: Claim<object>;
  readonly outcome: Outcome;
}

/** "lost": another worker holds the row now, or it was cancelled; nothing was written. */
export type Verdict = "done" | "retrying" | "failed" | "released" | "lost";

export const done = (result?: Record<string, unknown>): Outcome => (result ? { kind: "done", result } : DONE);
export const retry = (reason: string, delayMs?: number): Outcome =>
  delayMs === undefined ? { kind: "retry", reason } : { kind: "retry", reason, delayMs };
export const failed = (reason: string): Outcome => ({ kind: "failed", reason });
export const released = (delayMs?: number, reason?: string): Outcome => ({
  kind: "released",
  ...(delayMs !== undefined && { delayMs }),
  ...(reason !== undefined && { reason }),
});

const DONE: Outcome = Object.freeze({ kind: "done" });
