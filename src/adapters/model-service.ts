import { type IncomingHttpHeaders, validateHeaderValue } from "node:http";
import { QuarryError } from "../errors.ts";
import { hideSecrets, type Log } from "../log.ts";
import { agentFor, exchange, type Reply } from "./model-http.ts";
import { type ModelLimits, type Turn, usedTokens } from "./model-limits.ts";
import { realTime, type ServicePause, type ServiceTime, SharedPause } from "./model-pause.ts";

export interface ModelServiceSettings {
  /** For messages: "Ollama". */
  readonly name: string;
  readonly url: string;
  /** The names under which an operator finds the address and the key. */
  readonly urlSetting: string;
  readonly keySetting?: string;
  readonly apiKey?: string | undefined;
  /** For one request, from connecting to the last byte of its answer. */
  readonly timeoutMs: number;
  /** How long a service may be gone before its callers are told. */
  readonly outageMsMax?: number;
  readonly answerBytesMax?: number;
  /** Shared with all others that ask the same service. */
  readonly limits?: ModelLimits | undefined;
  readonly time?: ServiceTime | undefined;
  readonly log?: Log | undefined;
}

export interface Question {
  /** Below the service's address: "/embeddings". */
  readonly path: string;
  readonly body: unknown;
  /** What the service will count for it, as far as that is known before; guessed from its length when left out. */
  readonly tokens?: number | undefined;
  readonly signal: AbortSignal;
  /** It asks about several things, and whoever asks can ask about fewer. */
  readonly isSplittable: boolean;
  /** What to do when the service does not know the model. */
  readonly whenMissing: string;
}

type Verdict =
  | { readonly kind: "answer"; readonly value: unknown }
  | { readonly kind: "refusal"; readonly error: QuarryError }
  | { readonly kind: "too much"; readonly error: QuarryError }
  | { readonly kind: "busy"; readonly reason: string; readonly askedMs: number | undefined }
  | { readonly kind: "lost"; readonly reason: string };

const OUTAGE_MS_MAX = 60_000;
const CHARS_PER_TOKEN = 4;
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;
const BUSY = [429, 503, 529];
/** Said with 429 of what is more than a whole minute's allowance: waiting does not make it less. */
const NEVER_FITS = /request too large/i;
/** Whoever stands before the service cannot reach it. */
const GATEWAY_LOST = [502, 521, 522, 523];
const GATEWAY_TIMEOUT = [408, 504, 524];
/** Of an answer that is quoted. */
const QUOTE_CHARS_MAX = 300;
const QUOTE_FROM_CHARS_MAX = 20_000;

/**
 * Asks a model service and survives it. A service that is busy costs its callers nothing but time; one that is gone
 * is looked for, by all of them together, for a while. What is refused, or answered wrongly, is told at once:
 *
 * - `model_unavailable`: not the question's fault; ask again later, or mend a setting.
 * - `model_failed`: it may be the question's fault; ask about less at once, or count it as an attempt.
 * - `invalid_input`: the service refuses this very question, and will again.
 */
export class ModelService {
  readonly #settings: ModelServiceSettings;
  readonly #time: ServiceTime;
  readonly #url: URL;
  readonly #agent: ReturnType<typeof agentFor>;
  readonly #pause: SharedPause;
  readonly #calls = new Set<AbortController>();
  #isClosed = false;

  constructor(settings: ModelServiceSettings) {
    this.#settings = settings;
    this.#time = settings.time ?? realTime;
    this.#url = checkedUrl(settings);
    checkKey(settings);
    this.#agent = agentFor(this.#url);
    this.#pause = new SharedPause({ service: this.label, time: this.#time, log: settings.log });
  }

  /** Name and address, without what is secret in it. */
  get label(): string {
    return `${this.#settings.name} at ${this.#url.origin}${this.#url.pathname.replace(/\/$/, "")}`;
  }

  /** Of a minute; what is asked at once must be less. */
  get tokensMax(): number {
    return this.#settings.limits?.perMinute.tokens ?? Number.POSITIVE_INFINITY;
  }

  /** While it lasts, calls wait. */
  get pause(): ServicePause | undefined {
    return this.#pause.current;
  }

  /** The JSON that a service answers. Rejects with the signal's reason when that aborts. */
  async ask(question: Question): Promise<unknown> {
    if (this.#isClosed) throw this.#closedError();
    question.signal.throwIfAborted();
    const call = new AbortController();
    const onAbort = () => call.abort(question.signal.reason);
    question.signal.addEventListener("abort", onAbort, { once: true });
    this.#calls.add(call);
    try {
      return await this.#askUntilAnswered(question, call.signal);
    } finally {
      this.#calls.delete(call);
      question.signal.removeEventListener("abort", onAbort);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const call of this.#calls) call.abort(this.#closedError());
    this.#agent.destroy();
  }

  async #askUntilAnswered(question: Question, signal: AbortSignal): Promise<unknown> {
    let failures = 0;
    let failingSinceMs = 0;
    for (;;) {
      const lostReason = this.#pause.lostFor(this.#outageMsMax);
      if (lostReason !== undefined) throw this.#unavailable(lostReason);
      await this.#pause.over(signal);
      const turn = await this.#turn(question, signal);
      const askedAtMs = this.#time.clock.monotonic();
      const verdict = this.#judge(await this.#send(question, signal), question);
      switch (verdict.kind) {
        case "answer":
          this.#pause.answered(askedAtMs);
          if (turn) turn.tokens = usedTokens(verdict.value) ?? turn.tokens;
          return verdict.value;
        case "refusal":
          this.#pause.answered(askedAtMs);
          throw verdict.error;
        case "too much":
          throw verdict.error;
        case "busy":
          this.#pause.busy(verdict.reason, verdict.askedMs);
          break;
        case "lost": {
          const nowMs = this.#time.clock.monotonic();
          if (failures++ === 0) failingSinceMs = nowMs;
          this.#pause.lost(verdict.reason, failures);
          if (nowMs - failingSinceMs < this.#outageMsMax) break;
          if (!this.#pause.hasAnsweredSince(failingSinceMs)) throw this.#unavailable(verdict.reason);
          throw new QuarryError(
            "model_failed",
            `${this.label} answers others but not this, asked ${failures} times: ${verdict.reason}`,
          );
        }
        default:
          verdict satisfies never;
      }
    }
  }

  /** Undefined where there are no limits. */
  async #turn(question: Question, signal: AbortSignal): Promise<Turn | undefined> {
    const { limits } = this.#settings;
    if (!limits) return undefined;
    const { body, isSplittable } = question;
    const tokens = question.tokens ?? Math.ceil(JSON.stringify(body).length / CHARS_PER_TOKEN);
    const tokensMax = limits.perMinute.tokens;
    if (isSplittable && tokensMax !== undefined && tokens > tokensMax)
      throw new QuarryError(
        "model_failed",
        `${this.label} may be asked about ${tokensMax} tokens a minute, and this is ${tokens} at once`,
      );
    const turn = await limits.turn(tokens, signal);
    // Somebody may have been told to wait in the meantime.
    await this.#pause.over(signal);
    return turn;
  }

  #send({ path, body }: Question, signal: AbortSignal): Promise<Reply> {
    const { apiKey, timeoutMs, answerBytesMax } = this.#settings;
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/\/$/, "")}${path}`;
    return exchange({
      url,
      headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
      body: JSON.stringify(body),
      agent: this.#agent,
      signal,
      timeoutMs,
      bytesMax: answerBytesMax ?? ANSWER_BYTES_MAX,
    });
  }

  #judge(reply: Reply, question: Question): Verdict {
    if (reply.kind === "unreachable") return { kind: "lost", reason: reply.reason };
    if (reply.kind === "timeout") return this.#late(reply.reason, question);
    const { status, text, cut, headers } = reply;
    if (status >= 200 && status < 300)
      return cut ? this.#failed(`cut off its answer: ${cut}`) : this.#parsed(text);
    const said = `answered ${status}${this.#quote(text)}`;
    if (status === 429 && text.includes("insufficient_quota"))
      return this.#mend(said, "the account's credit");
    if (status === 429 && NEVER_FITS.test(text)) return this.#refused(said, question);
    if (BUSY.includes(status)) return { kind: "busy", reason: said, askedMs: this.#askedMs(headers) };
    if (GATEWAY_LOST.includes(status)) return { kind: "lost", reason: said };
    if (GATEWAY_TIMEOUT.includes(status)) return this.#late(said, question);
    const { urlSetting, keySetting = urlSetting } = this.#settings;
    if (status < 400)
      return this.#mend(`${said} and sends us elsewhere${this.#quote(headers.location)}`, urlSetting);
    if (status === 401 || status === 403) return this.#mend(said, keySetting);
    if (status === 404) return refusal("model_unavailable", `${this.label} ${said}. ${question.whenMissing}`);
    return status < 500 ? this.#refused(said, question) : this.#failed(said);
  }

  /** One of many may be what it refuses, or their number. What it refuses alone it will refuse again. */
  #refused(said: string, { isSplittable }: Question): Verdict {
    return refusal(isSplittable ? "model_failed" : "invalid_input", `${this.label} ${said}`);
  }

  /**
   * Many things at once may be too many for the time. Asked again as they were they would be too many again, for
   * ever; halved, they come through. One thing alone that takes too long is a sign of a service in trouble.
   */
  #late(reason: string, { isSplittable }: Question): Verdict {
    if (!isSplittable) return { kind: "lost", reason };
    const message = `${this.label} took too long for so much at once: ${reason}`;
    return { kind: "too much", error: new QuarryError("model_failed", message) };
  }

  #parsed(text: string): Verdict {
    try {
      return { kind: "answer", value: JSON.parse(text) };
    } catch {
      // What the parser says would quote a piece of the text that may end in the middle of our key.
      return this.#failed(`answered what is not JSON${this.#quote(text)}`);
    }
  }

  #failed(said: string): Verdict {
    return refusal("model_failed", `${this.label} ${said}`);
  }

  #mend(said: string, what: string): Verdict {
    return refusal("model_unavailable", `${this.label} ${said}: check ${what}`);
  }

  #unavailable(reason: string): QuarryError {
    return new QuarryError(
      "model_unavailable",
      `${this.label} does not answer (${this.#clean(reason)}): check that it runs and that ${this.#settings.urlSetting} is right`,
    );
  }

  /** By the service's own clock, where it says what it shows: ours may be another. */
  #askedMs(headers: IncomingHttpHeaders): number | undefined {
    const value = headers["retry-after"]?.trim();
    if (!value) return undefined;
    const seconds = Number(value);
    if (Number.isFinite(seconds)) return seconds * 1000;
    const sentMs = Date.parse(headers.date ?? "");
    const ms = Date.parse(value) - (Number.isNaN(sentMs) ? this.#time.clock.now() : sentMs);
    return Number.isNaN(ms) ? undefined : ms;
  }

  #quote(text: string | undefined): string {
    const quoted = this.#clean(text ?? "");
    return quoted === "" ? "" : `: ${quoted}`;
  }

  /** One short line. A service may say our key back to us: it is taken out first, also what a cut leaves of it. */
  #clean(text: string): string {
    const { apiKey = "" } = this.#settings;
    let shown = text.slice(0, QUOTE_FROM_CHARS_MAX);
    for (const form of formsOf(apiKey)) shown = shown.replaceAll(form, "[hidden]");
    if (text.length > QUOTE_FROM_CHARS_MAX) shown = shown.slice(0, -3 * apiKey.length || undefined);
    shown = hideSecrets(shown)
      .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
      .trim();
    return shown.length > QUOTE_CHARS_MAX ? `${shown.slice(0, QUOTE_CHARS_MAX)}…` : shown;
  }

  get #outageMsMax(): number {
    return this.#settings.outageMsMax ?? OUTAGE_MS_MAX;
  }

  #closedError(): QuarryError {
    return new QuarryError("shutting_down", `${this.#settings.name} is closed`);
  }
}

function refusal(code: "model_unavailable" | "model_failed" | "invalid_input", message: string): Verdict {
  return { kind: "refusal", error: new QuarryError(code, message) };
}

/** As it is, inside JSON, and inside an address, where it may be three times as long. */
function formsOf(secret: string): string[] {
  return secret === "" ? [] : [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

function checkedUrl({ url, name, urlSetting }: ModelServiceSettings): URL {
  const parsed = URL.parse(url);
  if (parsed && /^https?:$/.test(parsed.protocol)) return parsed;
  throw new QuarryError("invalid_input", `${urlSetting} must be the http(s) address of ${name}`);
}

function checkKey({ apiKey, keySetting }: ModelServiceSettings): void {
  try {
    validateHeaderValue("authorization", apiKey ?? "");
  } catch {
    throw new QuarryError(
      "invalid_input",
      `${keySetting} has characters that no key has: check it for line breaks`,
    );
  }
}
