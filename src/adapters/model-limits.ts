import { realTime, type ServiceTime } from "./model-pause.ts";

export interface PerMinute {
  readonly requests?: number | undefined;
  readonly tokens?: number | undefined;
}

/** What was taken of a minute. The tokens are a guess until the service has said what it used. */
export interface Turn {
  readonly atMs: number;
  tokens: number;
}

const MINUTE_MS = 60_000;

/**
 * How much one service may be asked in any minute, by all who ask it from this process. They get their turns in the
 * order in which they came: a large question is not overtaken for ever by small ones.
 */
export class ModelLimits {
  readonly perMinute: PerMinute;
  readonly #time: ServiceTime;
  /** Of the last minute, oldest first. */
  readonly #turns: Turn[] = [];
  #line: Promise<void> = Promise.resolve();

  constructor(perMinute: PerMinute, time: ServiceTime = realTime) {
    this.perMinute = perMinute;
    this.#time = time;
  }

  /** Waits until the question may be asked. Rejects with the signal's reason. */
  async turn(tokens: number, signal: AbortSignal): Promise<Turn> {
    const { promise: through, resolve: leave } = Promise.withResolvers<void>();
    const before = this.#line;
    this.#line = before.then(() => through);
    try {
      await unlessAborted(before, signal);
      for (;;) {
        signal.throwIfAborted();
        const waitMs = this.#waitMs(tokens);
        if (waitMs <= 0) break;
        await this.#time.sleep(waitMs, signal);
      }
      const turn = { atMs: this.#nowMs(), tokens };
      this.#turns.push(turn);
      return turn;
    } finally {
      leave();
    }
  }

  #waitMs(tokens: number): number {
    const nowMs = this.#nowMs();
    while (this.#turns.length > 0 && this.#turns[0]!.atMs <= nowMs - MINUTE_MS) this.#turns.shift();
    const { requests = Number.POSITIVE_INFINITY, tokens: tokensMax = Number.POSITIVE_INFINITY } =
      this.perMinute;
    // What is more than a whole minute's allowance goes alone.
    let excess =
      this.#turns.reduce((sum, turn) => sum + turn.tokens, Math.min(tokens, tokensMax)) - tokensMax;
    let over = this.#turns.length + 1 - requests;
    let waitMs = 0;
    for (const turn of this.#turns) {
      if (excess <= 0 && over <= 0) break;
      waitMs = turn.atMs + MINUTE_MS - nowMs;
      excess -= turn.tokens;
      over--;
    }
    return waitMs;
  }

  #nowMs(): number {
    return this.#time.clock.monotonic();
  }
}

/** The same limits for all that ask the same service. */
export class LimitsByService {
  readonly #perMinute: PerMinute;
  readonly #limits = new Map<string, ModelLimits>();

  constructor(perMinute: PerMinute) {
    this.#perMinute = perMinute;
  }

  /** Undefined where there are none. */
  of(url: string): ModelLimits | undefined {
    if (this.#perMinute.requests === undefined && this.#perMinute.tokens === undefined) return undefined;
    const service = URL.parse(url)?.origin ?? url;
    const known = this.#limits.get(service) ?? new ModelLimits(this.#perMinute);
    this.#limits.set(service, known);
    return known;
  }
}

function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener("abort", onAbort));
}

/** What services say they used, as Ollama and as OpenAI spell it. */
export function usedTokens(answer: unknown): number | undefined {
  const { usage, prompt_eval_count, eval_count } = (answer ?? {}) as {
    usage?: { total_tokens?: unknown } | null;
    prompt_eval_count?: unknown;
    eval_count?: unknown;
  };
  const said = [usage?.total_tokens, prompt_eval_count, eval_count].filter(
    (count) => typeof count === "number" && Number.isFinite(count) && count >= 0,
  ) as number[];
  return said.length === 0 ? undefined : said.reduce((sum, count) => sum + count, 0);
}
