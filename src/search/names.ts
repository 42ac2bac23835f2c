const NAME_WORDS_MAX = 4;
const WORDS_MAX = 200;
/** A query this short may be a name as people type it, without capitals. */
const BARE_NAME_WORDS_MAX = 3;
/** From the first letter to the last one. */
const BARE_WORD = /[\p{L}\p{N}](?:.*[\p{L}\p{N}])?/u;

/**
 * Runs of words that may be the name of something. A single word has to look like a name: "water" in a question is
 * hardly the entity that some heading made of it.
 */
export function namesIn(query: string): string[] {
  const words = query
    .split(/\s+/)
    .slice(0, WORDS_MAX)
    .flatMap((word) => BARE_WORD.exec(word)?.[0] ?? []);
  const isBare = words.length <= BARE_NAME_WORDS_MAX;
  const names = new Set<string>();
  for (const [start, word] of words.entries()) {
    if (isBare || (start > 0 && /^[\p{Lu}\p{Lo}\p{N}]/u.test(word))) names.add(word);
    for (let length = 2; length <= NAME_WORDS_MAX && start + length <= words.length; length++)
      names.add(words.slice(start, start + length).join(" "));
  }
  return [...names];
}
