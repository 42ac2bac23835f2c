import { CUT, isHeadingCut, type Piece, takeApart } from "./pieces.ts";

/** A piece and what it takes of a chunk. */
export interface Sized extends Piece {
  readonly tokens: number;
  readonly weight: number;
  readonly hash: number;
}

export type Run = readonly Sized[];

export interface PackingRules {
  readonly source: string;
  readonly countTokens: (text: string) => number;
  readonly fits: (run: Run) => boolean;
  /** How many tokens of the page a chunk holds that starts with this piece. */
  readonly roomFor: (piece: Piece) => number;
  /** What is smaller than this is better packed with its neighbours than left alone. */
  readonly tokensMin: number;
}

/** More characters for a token than any language needs. */
export const CHARS_PER_TOKEN_MAX = 8;

/**
 * Divides pieces into runs that fit, each a chunk. A run that does not fit is cut in two at its best place, and so
 * on. Among equally good places the hash of the text behind them decides, not how far they are from the start: so
 * an edit moves the cuts around it and no others.
 */
export function pack(pieces: readonly Piece[], rules: PackingRules): Run[] {
  const packed: Run[] = [];
  const waiting: Run[] = pieces.length > 0 ? [pieces.map((piece) => sized(piece, rules))] : [];
  for (let run = waiting.pop(); run; run = waiting.pop()) {
    const smaller = rules.fits(run) ? sectionsOf(run, rules) : divide(run, rules);
    if (smaller) waiting.push(...smaller.reverse());
    else packed.push(run);
  }
  return packed;
}

/** More pieces than this in a row do not belong together, whatever they are: a page of headings and nothing else. */
const GLUED_MAX = 8;

/** Sections that can stand alone are not put together, though they would fit. */
function sectionsOf(run: Run, { tokensMin }: PackingRules): Run[] | undefined {
  const place = bestPlace(
    run,
    { tokensMin, tokensEnough: tokensMin },
    (at) => isHeadingCut(at.cut) && at.lesser >= tokensMin,
  );
  return place && halves(run, place);
}

function divide(run: Run, rules: PackingRules): Run[] | undefined {
  const filling = fillingOf(run, rules);
  const place = bestPlace(run, filling, ({ cut }) => cut > CUT.glued);
  const isLarge = place && place.lesser >= rules.tokensMin && place.cut !== CUT.leadIn;
  const isGoodPlace = place && (isLarge || isHeadingCut(place.cut));
  const smaller = isGoodPlace || run.length > GLUED_MAX ? undefined : broken(run, place, rules);
  if (smaller) return [smaller];
  const anyPlace = place ?? bestPlace(run, filling, () => true);
  return anyPlace && halves(run, anyPlace);
}

/** The same run with its heaviest piece in parts, if that piece is why there is no good place. */
function broken(run: Run, place: Place | undefined, rules: PackingRules): Run | undefined {
  const heaviest = run.reduce((most, piece) => (piece.weight > most.weight ? piece : most));
  const isHeavy = run.length === 1 || heaviest.weight > rules.tokensMin;
  const isNoGoodPlace = heaviest.kind !== "row" && (!place || place.cut < CUT.row);
  if (!isHeavy || !(isNoGoodPlace || !rules.fits([heaviest]))) return undefined;
  const parts = takeApart(heaviest, rules.source).map((part) => sized(part, rules));
  return parts.length > 1 ? run.flatMap((piece) => (piece === heaviest ? parts : [piece])) : undefined;
}

/** What makes one place better than another that is as good. */
interface Filling {
  /** A side that has less is too small to stand alone. */
  readonly tokensMin: number;
  /** Where both sides have this, it does not matter how much more. */
  readonly tokensEnough: number;
  /** How many chunks the run needs when it is cut before each of its pieces. */
  readonly chunksByIndex?: readonly number[];
}

/**
 * A table is filled up to this many chunks at a time: it is cut where that costs no chunk more. One that needs more is
 * divided first, like any text, so that an added row moves no other cuts than these. With 8, a table has a tenth more
 * chunks than it needs, and an added row changes 2.5 of them; with 4 it is a fifth and 1.8, with 12 a twentieth and 3.3.
 */
const FILLED_AT_ONCE_MAX = 8;
/** How small a part that is filled at once, or a chunk of it, becomes for the sake of the hash. */
const PART_CHUNKS_MIN = 2;
const CHUNK_SHARE_MIN = 1 / 2;

function fillingOf(run: Run, { tokensMin, roomFor }: PackingRules): Filling {
  const row = run.findLast(({ kind }) => kind === "row");
  if (!row) return { tokensMin, tokensEnough: tokensMin };
  const room = roomFor(row);
  const before = chunksUpTo(run, room);
  const behind = chunksUpTo(run.toReversed(), room).toReversed();
  if (before.at(-1)! > FILLED_AT_ONCE_MAX) return { tokensMin, tokensEnough: room * PART_CHUNKS_MIN };
  const chunksByIndex = before.map((chunks, index) => chunks + behind[index]!);
  return { tokensMin, tokensEnough: room * CHUNK_SHARE_MIN, chunksByIndex };
}

/** How many chunks the first pieces need: none of them, one, two, and so on. */
function chunksUpTo(run: Run, room: number): number[] {
  let chunks = 0;
  let left = 0;
  const needed = run.map(({ weight }) => {
    if (weight > left) {
      chunks += 1;
      left = room;
    }
    left -= weight;
    return chunks;
  });
  return [0, ...needed];
}

/** Between two pieces of a run. */
interface Place {
  readonly index: number;
  readonly cut: number;
  /** The weight of the lighter side. */
  readonly lesser: number;
  readonly hash: number;
}

/** How much worse a place is when it leaves one side too small: all but the lowest headings still beat a paragraph. */
const TOO_SMALL = 4;

function bestPlace(run: Run, filling: Filling, isWanted: (place: Place) => boolean): Place | undefined {
  const total = run.reduce((sum, { weight }) => sum + weight, 0);
  const worthOf = ({ cut, lesser }: Place) => (lesser < filling.tokensMin ? cut - TOO_SMALL : cut);
  let best: Place | undefined;
  let before = 0;
  for (const [index, piece] of run.entries()) {
    const place = { index, cut: piece.cut, hash: piece.hash, lesser: Math.min(before, total - before) };
    before += piece.weight;
    if (index === 0 || !isWanted(place)) continue;
    const by = best && worthOf(place) - worthOf(best);
    if (!best || (by === 0 ? isBetter(place, best, filling) : by! > 0)) best = place;
  }
  return best;
}

function isBetter(place: Place, best: Place, { tokensEnough, chunksByIndex }: Filling): boolean {
  const chunksMore = chunksByIndex ? chunksByIndex[place.index]! - chunksByIndex[best.index]! : 0;
  if (chunksMore !== 0) return chunksMore < 0;
  const areBothLarge = Math.min(place.lesser, best.lesser) >= tokensEnough;
  if (areBothLarge && place.hash !== best.hash) return place.hash > best.hash;
  return place.lesser > best.lesser;
}

function halves(run: Run, { index }: Place): Run[] {
  return [run.slice(0, index), run.slice(index)];
}

function sized(piece: Piece, { source, countTokens }: PackingRules): Sized {
  const text = source.slice(piece.start, piece.end);
  // To some tokenizers a line break is a token: where rows are short, it counts.
  const tokens = countTokens(piece.kind === "row" ? `${text}\n` : text);
  return {
    ...piece,
    tokens,
    weight: weightOf(text, tokens),
    hash: hashOf(text),
  };
}

/** Tokens, or more where the tokenizer sees few in many characters: it takes a word it cannot read for one. */
export function weightOf(text: string, tokens: number): number {
  return Math.max(tokens, text.length / CHARS_PER_TOKEN_MAX);
}

/** FNV-1a: it only has to spread. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
