import { QuarryError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Completion, LlmRequest } from "../llm.ts";
import type { ModelLimits } from "../model-limits.ts";
import type { ServiceTime } from "../model-pause.ts";

/** What is said of every service, whichever protocol it speaks. */
export interface LlmServiceSettings {
  readonly model: string;
  /** For one answer, from connecting to its last byte. */
  readonly timeoutMs: number;
  readonly outageMsMax?: number;
  readonly limits?: ModelLimits | undefined;
  readonly time?: ServiceTime;
  readonly log?: Log | undefined;
}

/** Somebody waits for the answer: a service that is away is not waited for as long as for a batch of texts. */
export const OUTAGE_MS_MAX = 20_000;

/** What a service said, before anybody looked at it. */
export interface Said {
  readonly text: string;
  /** It stopped because it had no room left. */
  readonly isCut: boolean;
  readonly tokens: number | undefined;
}

const COUNT_MAX = 1_000_000_000;
/** Models that think aloud do so before their answer. */
const THOUGHTS = /^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>\s*/i;

export function completionOf(said: Said, request: LlmRequest, service: string): Completion {
  const text = said.text.replace(THOUGHTS, "").toWellFormed().replaceAll("\u0000", " ").trim();
  if (said.isCut)
    throw new QuarryError(
      "model_failed",
      `${service} needed more than ${request.tokensMax} tokens to answer`,
    );
  if (text === "") throw new QuarryError("model_failed", `${service} gave an empty answer`);
  return { text, tokens: isCount(said.tokens) ? said.tokens : estimated(request, said.text) };
}

/** An absurd figure must not cost the answer it came with. */
function isCount(tokens: number | undefined): tokens is number {
  return Number.isInteger(tokens) && tokens! > 0 && tokens! <= COUNT_MAX;
}

const CHARS_PER_TOKEN = 4;

function estimated(request: LlmRequest, answer: string): number {
  return promptTokens(request) + Math.ceil(answer.length / CHARS_PER_TOKEN);
}

export function promptTokens({ system, messages }: LlmRequest): number {
  const chars = messages.reduce((sum, { content }) => sum + content.length, system.length);
  return Math.ceil(chars / CHARS_PER_TOKEN);
}
