import type { ErrorCode, QuarryError } from "../errors.ts";
import type { Claim } from "./outcome.ts";
import type { Key } from "./roll-up.ts";

/** What a handler is given: its claim, and a signal that aborts when the claim is lost or must end. */
export interface Task<Payload extends object = Record<string, unknown>> extends Claim<Payload> {
  readonly signal: AbortSignal;
}

/** A claim in the hands of a lane. Handlers see it as their task. */
export class Held implements Task<object> {
  readonly key: Key;
  readonly token: number;
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly row: object;
  /** waiting → running → settling; "lost" when another worker has it. */
  state: "waiting" | "running" | "settling" | "lost" = "waiting";
  /** On the monotonic clock of this process; counted from before the lease was asked for. */
  leaseEndsAt: number;
  #controller: AbortController | undefined;
  #reason: QuarryError | undefined;

  constructor(claim: Claim<object>, leaseEndsAt: number) {
    this.key = claim.key;
    this.token = claim.token;
    this.attempt = claim.attempt;
    this.attemptsMax = claim.attemptsMax;
    this.row = claim.row;
    this.leaseEndsAt = leaseEndsAt;
  }

  /** Most handlers of short tasks never look at their signal, so it is made when asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get abortReason(): QuarryError | undefined {
    return this.#reason;
  }

  get abortedBecause(): ErrorCode | undefined {
    return this.#reason?.code;
  }

  abort(reason: QuarryError): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
