import { QuarryError } from "../errors.ts";
import { checkedLimit } from "./job-rows.ts";
import type { DeadLetter, DeadLetterListOptions, DeadLetterPage } from "./queue.ts";
import { KEYS } from "./redis-keys.ts";
import type { RedisLink } from "./redis-link.ts";

const LOOKED_AT_ONCE = 500;
/** A page of a filtered list may be short, or empty, and say that there is more. */
const LOOKED_AT_MAX = 10_000;

/** Dead letters in Redis, newest first; the cursor counts from the other end, which new letters do not move. */
export async function listLetters(
  link: RedisLink,
  options: DeadLetterListOptions = {},
): Promise<DeadLetterPage> {
  const limit = checkedLimit(options.limit);
  const length = Number(await link.command("LLEN", KEYS.deadLetter));
  const isFiltered = options.rag_id !== undefined || options.error_code !== undefined;
  const letters: DeadLetter[] = [];
  let at = startOf(options.after, length);
  for (const end = Math.min(length, at + LOOKED_AT_MAX); at < end && letters.length < limit; ) {
    const size = Math.min(end - at, isFiltered ? LOOKED_AT_ONCE : limit - letters.length);
    const range = [String(at), String(at + size - 1)];
    const texts = (await link.command("LRANGE", KEYS.deadLetter, ...range)) as string[];
    if (texts.length === 0) break;
    for (const text of texts) {
      if (letters.length === limit) break;
      const letter = letterOf(text);
      if (isWanted(letter, options)) letters.push(letter);
      at++;
    }
  }
  return { letters, next: at < length ? String(length - at) : undefined };
}

/** The list belongs to everybody: what somebody else has put there is shown as it is. */
export function letterOf(text: string): DeadLetter {
  let letter: Record<string, unknown>;
  try {
    letter = (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    letter = {};
  }
  const said = (name: string) =>
    typeof letter[name] === "string" && letter[name] !== "" ? letter[name] : undefined;
  return {
    id: said("id") ?? "",
    job_id: said("job_id") ?? null,
    rag_id: said("rag_id") ?? null,
    reason: said("reason") ?? "no reason was given",
    error_code: said("error_code") ?? null,
    failed_at: said("failed_at") ?? "",
    message: typeof letter.message === "string" ? letter.message : text,
  };
}

function isWanted(letter: DeadLetter, { rag_id, error_code }: DeadLetterListOptions): boolean {
  return (
    (rag_id === undefined || letter.rag_id === rag_id) &&
    (error_code === undefined || letter.error_code === error_code)
  );
}

function startOf(after: string | undefined, length: number): number {
  if (after === undefined) return 0;
  if (/^\d{1,10}$/.test(after)) return Math.max(0, length - Number(after));
  throw new QuarryError(
    "invalid_input",
    "this cursor does not come from a list of dead letters; start again without it",
  );
}
