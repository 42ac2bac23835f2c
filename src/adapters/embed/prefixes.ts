import type { TextUse } from "../embed.ts";
import { plainName } from "./known-models.ts";

type Prefixes = Readonly<Record<TextUse, string>>;

const NONE: Prefixes = { question: "", passage: "" };
const FOR_SEARCHING = {
  question: "Represent this sentence for searching relevant passages: ",
  passage: "",
};

/** What a model was taught to find before a text, by its plain name. The first that matches. */
const TAUGHT: readonly (readonly [name: RegExp, prefixes: Prefixes])[] = [
  [/^nomic-embed-text/, { question: "search_query: ", passage: "search_document: " }],
  [/^mxbai-embed-large/, FOR_SEARCHING],
  [/^bge-(small|base|large)(-en(-v1\.5)?)?$/, FOR_SEARCHING],
  // These want a whole instruction, which depends on what is searched.
  [/e5-.*instruct/, NONE],
  [/^(multilingual-)?e5-/, { question: "query: ", passage: "passage: " }],
];

export function prefixesOf(model: string): Prefixes {
  const name = plainName(model);
  return TAUGHT.find(([pattern]) => pattern.test(name))?.[1] ?? NONE;
}
