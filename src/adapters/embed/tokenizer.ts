import { readFile } from "node:fs/promises";
import { Tokenizer as WordPieces } from "@huggingface/tokenizers";
import type { Tokenizer } from "../embed.ts";
import { modelFile } from "./model-files.ts";

/**
 * The tokenizer of a model. OpenAI's models have theirs; most others that embed share the vocabulary of BERT, and
 * for those that do not its count is a fair estimate on the high side.
 */
export function openTokenizer(model: string): Promise<Tokenizer> {
  return model.startsWith("text-embedding-") ? openBytePairs() : openWordPieces();
}

/** Words longer than this are rarely seen twice. */
const WORD_CHARS_MAX = 40;
const WORDS_MAX = 50_000;

/** What word pieces never reach across: white space, and Chinese characters, each of which is a word. */
const WORD = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^ \t\r\n\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+/g;

/** A text has as many pieces as its words, and most words were seen before. */
async function openWordPieces(): Promise<Tokenizer> {
  const tokenizer = await readWordPieces();
  const known = new Map<string, number>();
  const countWord = (word: string) => tokenizer.encode(word, { add_special_tokens: false }).ids.length;
  const countKnown = (word: string) => {
    if (word.length > WORD_CHARS_MAX) return countWord(word);
    const before = known.get(word);
    if (before !== undefined) return before;
    const count = countWord(word);
    if (known.size >= WORDS_MAX) known.clear();
    known.set(word, count);
    return count;
  };
  return {
    count: (text) => {
      let count = 0;
      for (const word of text.match(WORD) ?? []) count += countKnown(word);
      return count;
    },
  };
}

export async function readWordPieces(): Promise<WordPieces> {
  const [tokenizer, settings] = await Promise.all(
    ["tokenizer.json", "tokenizer_config.json"].map(async (name) =>
      JSON.parse(await readFile(modelFile(name), "utf8")),
    ),
  );
  return new WordPieces(tokenizer, settings);
}

/** The time for a word or a space grows with the square of its length; broken ones have a few tokens more. */
const LONG_RUN = /\S{400}|\s{400}/gu;

async function openBytePairs(): Promise<Tokenizer> {
  const { countTokens } = await import("gpt-tokenizer/encoding/cl100k_base");
  // Text that looks like a control token is text.
  const asText = { disallowedSpecial: new Set<string>() };
  return { count: (text) => countTokens(text.replace(LONG_RUN, "$& . "), asText) };
}
