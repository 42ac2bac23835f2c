import { QuarryError } from "../../errors.ts";
import type { Tokenizer } from "../embed.ts";

/** A piece of a text that fits a model's window. */
export interface Window {
  readonly text: string;
  readonly tokens: number;
}

/** A text of more windows than this should have been cut into chunks. */
const WINDOWS_MAX = 64;

/** A word with the space before it, and the space at the end of a text. */
const WORD = /\s*\S+|\s+$/g;

/** What is longer than a window is read in several, cut between words. The text has a word. */
export function windowsOf(text: string, tokensMax: number, tokenizer: Tokenizer): Window[] {
  const tokens = tokenizer.count(text);
  if (tokens <= tokensMax) return [{ text, tokens }];
  if (tokens > tokensMax * WINDOWS_MAX) throw tooLong(tokens, tokensMax);
  const windows: Window[] = [];
  for (const word of text.match(WORD) ?? []) {
    const [first, ...rest] = fitting(word, tokensMax, tokenizer);
    const last = windows.at(-1);
    if (last && last.tokens + first!.tokens <= tokensMax)
      windows[windows.length - 1] = { text: last.text + first!.text, tokens: last.tokens + first!.tokens };
    else windows.push(first!);
    // Not joined to each other: what was one word may have more tokens than its parts.
    windows.push(...rest);
  }
  return windows.filter(hasWords);
}

function hasWords({ text }: Window): boolean {
  return text.trim() !== "";
}

/** A word that no window holds, such as a page of Chinese, is halved until its parts fit. */
function fitting(word: string, tokensMax: number, tokenizer: Tokenizer): Window[] {
  const tokens = tokenizer.count(word);
  const parts = tokens > tokensMax ? halves(word) : [word];
  if (parts.length === 1) return [{ text: word, tokens }];
  return parts.flatMap((part) => fitting(part, tokensMax, tokenizer));
}

/** For a model that counts more tokens than we do. */
export function halvedWindow({ text, tokens }: Window): Window[] {
  return halves(text)
    .map((half) => ({ text: half, tokens: Math.ceil(tokens / 2) }))
    .filter(hasWords);
}

/** Between words, where there is a space soon after the middle. One character stays as it is. */
function halves(text: string): string[] {
  const middle = Math.max(1, Math.floor(text.length / 2));
  const space = text.indexOf(" ", middle);
  const cut = space > 0 && space < text.length * 0.75 ? space : afterCharacter(text, middle);
  return cut < text.length ? [text.slice(0, cut), text.slice(cut)] : [text];
}

/** Some characters have two places in a string. */
function afterCharacter(text: string, index: number): number {
  return text.codePointAt(index - 1)! > 0xffff ? index + 1 : index;
}

/** One vector for all windows of a text: each weighs as many tokens as it has. Not yet of unit length. */
export function averaged(
  windows: readonly Window[],
  vectors: readonly Float32Array[],
  dimensions: number,
): Float32Array {
  const sum = new Float32Array(dimensions);
  for (const [index, vector] of vectors.entries()) {
    const weight = Math.max(1, windows[index]!.tokens);
    for (let dimension = 0; dimension < dimensions; dimension++)
      sum[dimension]! += weight * vector[dimension]!;
  }
  return sum;
}

function tooLong(tokens: number, tokensMax: number): QuarryError {
  return new QuarryError(
    "invalid_input",
    `a text of ${tokens} tokens is too long for one vector: cut it to ${tokensMax * WINDOWS_MAX}`,
  );
}
