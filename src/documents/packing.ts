import { CUT, isHeadingCut, type Piece, takeApart } from "./pieces.ts";

/** A piece and what it takes of a chunk. */
export interface Sized extends Piece {
  readonly tokens: number;
  /** Tokens, or more where the tokenizer sees few in many characters: it takes a word it cannot read for one. */
  readonly weight: number;
  readonly hash: number;
}

export type Run = readonly Sized[];

export interface PackingRules {
  readonly source: string;
  readonly countTokens: (text: string) => number;
  readonly fits: (run: Run) => boolean;
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
  const place = bestPlace(run, tokensMin, (at) => isHeadingCut(at.cut) && at.lesser >= tokensMin);
  return place && halves(run, place);
}

function divide(run: Run, rules: PackingRules): Run[] | undefined {
  const place = bestPlace(run, rules.tokensMin, ({ cut }) => cut > CUT.glued);
  const isGoodPlace = place && (place.lesser >= rules.tokensMin || isHeadingCut(place.cut));
  const smaller = isGoodPlace || run.length > GLUED_MAX ? undefined : broken(run, place, rules);
  if (smaller) return [smaller];
  const anyPlace = place ?? bestPlace(run, rules.tokensMin, () => true);
  return anyPlace && halves(run, anyPlace);
}

/** The same run with its heaviest piece in parts, if that piece is why there is no good place. */
function broken(run: Run, place: Place | undefined, rules: PackingRules): Run | undefined {
  const heaviest = run.reduce((most, piece) => (piece.weight > most.weight ? piece : most));
  const isHeavy = run.length === 1 || heaviest.weight > rules.tokensMin;
  const isInTheWay = !place || place.cut < CUT.row || !rules.fits([heaviest]);
  if (!isHeavy || !isInTheWay) return undefined;
  const parts = takeApart(heaviest, rules.source).map((part) => sized(part, rules));
  return parts.length > 1 ? run.flatMap((piece) => (piece === heaviest ? parts : [piece])) : undefined;
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
const TOO_SMALL = 2;

function bestPlace(run: Run, tokensMin: number, isWanted: (place: Place) => boolean): Place | undefined {
  const total = run.reduce((sum, { weight }) => sum + weight, 0);
  const worthOf = ({ cut, lesser }: Place) => (lesser < tokensMin ? cut - TOO_SMALL : cut);
  let best: Place | undefined;
  let before = 0;
  for (const [index, piece] of run.entries()) {
    const place = { index, cut: piece.cut, hash: piece.hash, lesser: Math.min(before, total - before) };
    before += piece.weight;
    if (index === 0 || !isWanted(place)) continue;
    if (!best || isBetter(place, best, { by: worthOf(place) - worthOf(best), tokensMin })) best = place;
  }
  return best;
}

function isBetter(place: Place, best: Place, { by, tokensMin }: { by: number; tokensMin: number }): boolean {
  if (by !== 0) return by > 0;
  const areBothLarge = Math.min(place.lesser, best.lesser) >= tokensMin;
  if (areBothLarge && place.hash !== best.hash) return place.hash > best.hash;
  return place.lesser > best.lesser;
}

function halves(run: Run, { index }: Place): Run[] {
  return [run.slice(0, index), run.slice(index)];
}

function sized(piece: Piece, { source, countTokens }: PackingRules): Sized {
  const text = source.slice(piece.start, piece.end);
  const tokens = countTokens(text);
  return {
    ...piece,
    tokens,
    weight: Math.max(tokens, text.length / CHARS_PER_TOKEN_MAX),
    hash: hashOf(text),
  };
}

/** FNV-1a: it only has to spread. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
