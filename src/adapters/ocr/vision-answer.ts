import { QuarryError } from "../../errors.ts";

/** What the model says when there is nothing to read. */
export const EMPTY = "[empty page]";

/** A model that does not know how to go on says the same again, until it has no room left. */
const REPEATS_MAX = 9;
const PERIOD_LINES_MAX = 12;
const PERIOD_WORDS_MAX = 24;

const THOUGHTS = /^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>\s*/i;
const FENCED = /^```(?:markdown|md|text)?[ \t]*\n([\s\S]*?)\n?```$/i;
const NOTHING = /^[[(]?\s*(?:empty|blank|no text)(?: page)?\s*[\])]?\.?$/i;
const REFUSAL =
  /^(?:i['’]?m sorry|i am sorry|sorry,|i can(?:no|['’])t|i cannot|i am unable|i['’]?m unable|as an ai\b)/i;
/** A page that begins like that goes on for longer. */
const REFUSAL_CHARS_MAX = 400;

export interface Transcript {
  readonly markdown: string;
  /** It said the same over and over. */
  readonly isLooping: boolean;
}

/** The page in what a model said: without its thoughts, its fence and what it repeated without end. */
export function transcriptOf(said: string, { isCut }: { isCut: boolean }): Transcript {
  const whole = said.toWellFormed().replaceAll("\0", " ").replace(THOUGHTS, "").trim();
  const bare = (FENCED.exec(whole)?.[1] ?? whole.replace(/^```(?:markdown|md)\n/i, "")).trim();
  if (bare === "" || NOTHING.test(bare) || bare === EMPTY) return { markdown: "", isLooping: false };
  if (bare.length <= REFUSAL_CHARS_MAX && REFUSAL.test(bare))
    throw new QuarryError("model_failed", `the model refused to read the page: ${bare.slice(0, 200)}`);
  const markdown = withoutLoops(bare);
  const isLooping = markdown.length < bare.length;
  if (isCut && !isLooping)
    throw new QuarryError("model_failed", "the model had no room to read the page to its end");
  return { markdown, isLooping };
}

function withoutLoops(text: string): string {
  const lines = withoutRepeats(text.split("\n"), PERIOD_LINES_MAX);
  return lines
    .map((line) => withoutRepeats(line.split(" "), PERIOD_WORDS_MAX).join(" "))
    .join("\n")
    .trim();
}

/** Of what stands more than `REPEATS_MAX` times in a row, one stays. Ruled lines and dots are no loops. */
function withoutRepeats(items: readonly string[], periodMax: number): string[] {
  const kept: string[] = [];
  for (let at = 0; at < items.length; ) {
    const { period, times } = repeatAt(items, at, periodMax);
    if (times > REPEATS_MAX) {
      kept.push(...items.slice(at, at + period));
      // What is left of the last round, when it ran out of room in it.
      at += period * times;
      while (at < items.length && items[at - period]!.startsWith(items[at]!)) at++;
    } else kept.push(items[at++]!);
  }
  return kept;
}

function repeatAt(
  items: readonly string[],
  at: number,
  periodMax: number,
): { period: number; times: number } {
  for (let period = 1; period <= periodMax; period++) {
    if (!items.slice(at, at + period).some((item) => /\p{L}/u.test(item))) continue;
    let same = 0;
    while (at + period + same < items.length && items[at + same] === items[at + period + same]) same++;
    const times = 1 + Math.floor(same / period);
    if (times > REPEATS_MAX) return { period, times };
  }
  return { period: 1, times: 1 };
}
