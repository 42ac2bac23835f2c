import { isQuarryError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Embedded, Embedder, TextUse, Tokenizer } from "../embed.ts";
import type { ModelLimits } from "../model-limits.ts";
import type { ServicePause, ServiceTime } from "../model-pause.ts";
import type { ModelService } from "../model-service.ts";
import { type KnownModel, knownModel } from "./known-models.ts";
import { prefixesOf } from "./prefixes.ts";
import { openTokenizer } from "./tokenizer.ts";
import { checkedVectors, unitVector } from "./vectors.ts";
import { averaged, halvedWindow, type Window, windowsOf } from "./windows.ts";

/** What is said of every service, whichever protocol it speaks. */
export interface ServiceSettings {
  /** For one request. */
  readonly timeoutMs: number;
  /** Fewer than the model's own, where it can be cut short. Not all services know how to. */
  readonly dimensions?: number | undefined;
  /** The model's window. */
  readonly tokensMax?: number | undefined;
  readonly outageMsMax?: number;
  readonly limits?: ModelLimits | undefined;
  readonly time?: ServiceTime;
  readonly log?: Log | undefined;
}

/** An embedder that asks a service over HTTP. */
export interface ServiceEmbedder extends Embedder {
  /** Until when calls wait for the service, and why. */
  pause(): ServicePause | undefined;
}

/** What a service says of some texts. */
export interface Reading {
  /** In the order of the texts, as they came. */
  readonly vectors: readonly Float32Array[];
  readonly tokens: number | undefined;
}

interface RequestOptions {
  readonly signal: AbortSignal;
  readonly isSplittable: boolean;
  /** What it will cost, as far as that can be counted here. */
  readonly tokens?: number;
}

export interface ServiceEmbedderParts {
  readonly model: string;
  /** When the caller knows them, or wants others than the model gives by itself. */
  readonly dimensions: number | undefined;
  /** The model's window, when the caller knows it. */
  readonly tokensMax: number | undefined;
  /** Of one request. */
  readonly limits: { readonly textsMax: number; readonly tokensMax: number };
  readonly service: ModelService;
  readonly request: (inputs: readonly string[], options: RequestOptions) => Promise<Reading>;
}

/** What models of unknown window hold at least. */
const WINDOW = 512;
/** Before and after a text. */
const MARKS = 2;
/** Services refuse a text without words, though it must have a vector. */
const NOTHING = ".";
const HALVINGS_MAX = 4;
const COUNT_MAX = 1_000_000_000;
const TOO_LONG = /context (length|size)|too (long|large)|tokens/i;

/** What embedders of all services have in common: prefixes, windows, batches, and vectors that can be trusted. */
export async function openServiceEmbedder(parts: ServiceEmbedderParts): Promise<ServiceEmbedder> {
  const { service } = parts;
  try {
    const known = knownModel(parts.model);
    const tokenizer = await openTokenizer(parts.model);
    const reader: Reader = {
      parts,
      tokenizer,
      dimensions: parts.dimensions ?? known?.dimensions ?? (await askDimensions(parts)),
      tokensMax: tokensMaxOf(parts, known, tokenizer),
    };
    return {
      model: nameOf(parts, known),
      dimensions: reader.dimensions,
      tokensMax: reader.tokensMax,
      tokenizer,
      embed: (texts, signal, use = "passage") => embed(reader, texts, { signal, use }),
      pause: () => service.pause,
      close: async () => service.close(),
    };
  } catch (error) {
    service.close();
    throw error;
  }
}

async function askDimensions({ service, request }: ServiceEmbedderParts): Promise<number> {
  const { signal } = new AbortController();
  const { vectors } = await request(["word"], { signal, isSplittable: false });
  const dimensions = vectors[0]?.length ?? 0;
  checkedVectors(vectors, { service: service.label, count: 1, dimensions });
  return dimensions;
}

function tokensMaxOf(
  { model, tokensMax }: ServiceEmbedderParts,
  known: KnownModel | undefined,
  tokenizer: Tokenizer,
): number {
  const prefixTokens = Object.values(prefixesOf(model)).map((prefix) => tokenizer.count(prefix));
  return Math.max(1, (tokensMax ?? known?.window ?? WINDOW) - MARKS - Math.max(...prefixTokens));
}

/** Vectors that were cut short are those of another model. */
function nameOf({ model, dimensions }: ServiceEmbedderParts, known: KnownModel | undefined): string {
  return dimensions === undefined || dimensions === known?.dimensions ? model : `${model}/${dimensions}`;
}

interface Reader {
  readonly parts: ServiceEmbedderParts;
  readonly tokenizer: Tokenizer;
  readonly dimensions: number;
  readonly tokensMax: number;
}

interface Asked extends RequestOptions {
  readonly prefix: string;
}

async function embed(
  reader: Reader,
  texts: readonly string[],
  { signal, use }: { signal: AbortSignal; use: TextUse },
): Promise<Embedded> {
  signal.throwIfAborted();
  const windowsByText = texts.map((text) => windowsOf(cleaned(text), reader.tokensMax, reader.tokenizer));
  const asked = { signal, isSplittable: texts.length > 1, prefix: prefixesOf(reader.parts.model)[use] };
  if (texts.length === 1)
    return embedOne(reader, windowsByText[0]!, { ...asked, halvingsLeft: HALVINGS_MAX });
  const { vectors, tokens } = await readAll(reader, windowsByText.flat(), asked);
  let from = 0;
  return {
    vectors: windowsByText.map((windows) => {
      const own = vectors.slice(from, from + windows.length);
      from += windows.length;
      return together(reader, windows, own);
    }),
    tokens,
  };
}

/** A model may count more tokens than we do. Then the text is read in smaller pieces. */
async function embedOne(
  reader: Reader,
  windows: readonly Window[],
  asked: Asked & { readonly halvingsLeft: number },
): Promise<Embedded> {
  try {
    const { vectors, tokens } = await readAll(reader, windows, asked);
    return { vectors: [together(reader, windows, vectors)], tokens };
  } catch (error) {
    if (asked.halvingsLeft === 0 || !isTooLong(error)) throw error;
    const smaller = windows.flatMap(halvedWindow);
    return embedOne(reader, smaller, { ...asked, halvingsLeft: asked.halvingsLeft - 1 });
  }
}

/** Services have no common word for it; a needless second try with shorter pieces does no harm. */
function isTooLong(error: unknown): boolean {
  return isQuarryError(error, "invalid_input", "model_failed") && TOO_LONG.test(error.message);
}

function together(
  { dimensions, parts }: Reader,
  windows: readonly Window[],
  vectors: readonly Float32Array[],
): Float32Array {
  if (vectors.length === 1) return vectors[0]!;
  return unitVector(averaged(windows, vectors, dimensions), parts.service.label);
}

/** One request after the other: how many run at once is for the callers to say. */
async function readAll(
  { parts, tokenizer, dimensions }: Reader,
  windows: readonly Window[],
  { signal, isSplittable, prefix }: Asked,
): Promise<Embedded> {
  const vectors: Float32Array[] = [];
  let tokens = 0;
  const prefixTokens = tokenizer.count(prefix);
  const { textsMax } = parts.limits;
  const tokensMax = Math.min(parts.limits.tokensMax, parts.service.tokensMax);
  for (const batch of batchesOf(windows, { textsMax, tokensMax }, prefixTokens)) {
    const inputs = batch.map(({ text }) => `${prefix}${text}`);
    const counted = batch.reduce((sum, window) => sum + window.tokens + prefixTokens, 0);
    const reading = await parts.request(inputs, { signal, isSplittable, tokens: counted });
    const expected = { service: parts.service.label, count: batch.length, dimensions };
    vectors.push(...checkedVectors(reading.vectors, expected));
    tokens += isCount(reading.tokens) ? reading.tokens : counted;
  }
  return { vectors, tokens };
}

/** What a service says it used is written down; an absurd figure must not cost the vectors it came with. */
function isCount(tokens: number | undefined): tokens is number {
  return Number.isInteger(tokens) && tokens! > 0 && tokens! <= COUNT_MAX;
}

function cleaned(text: string): string {
  const clean = text.toWellFormed().replaceAll("\u0000", " ");
  return clean.trim() === "" ? NOTHING : clean;
}

function* batchesOf(
  windows: readonly Window[],
  limits: ServiceEmbedderParts["limits"],
  prefixTokens: number,
): Generator<readonly Window[]> {
  let batch: Window[] = [];
  let tokens = 0;
  for (const window of windows) {
    const more = window.tokens + prefixTokens + MARKS;
    if (batch.length > 0 && (batch.length >= limits.textsMax || tokens + more > limits.tokensMax)) {
      yield batch;
      batch = [];
      tokens = 0;
    }
    batch.push(window);
    tokens += more;
  }
  if (batch.length > 0) yield batch;
}
