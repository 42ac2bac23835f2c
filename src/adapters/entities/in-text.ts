import type { Extraction, FoundEntity, FoundRelation } from "../entities.ts";
import { normaliseName } from "./normalise.ts";

const ENTITIES_MAX = 200;
const RELATIONS_MAX = 200;
/** Of one name; what stands more often is not more there. */
const PLACES_MAX = 10;
const CONFIDENCE_MIN = 0.05;
/** Between the words of a name: it may go on behind a mark or on the next line. */
const BETWEEN = "[\\s*_~[\\]!#\\\\`|]+";
const MARKS = /[*_~[\]!#\\`|]/g;
const SYNTAX = /[\\^$.*+?()[\]{}|/]/g;
/** Written without spaces between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

export interface Claimed {
  readonly entities: readonly {
    readonly name: string;
    readonly type: string;
    readonly confidence: number;
  }[];
  readonly relations: readonly {
    readonly source: string;
    readonly target: string;
    readonly type: string;
    readonly evidence: string;
    readonly confidence: number;
  }[];
}

interface Place {
  readonly start: number;
  readonly end: number;
}

/** Of what a model claims to have read in a text, what really stands there, and where. */
export function foundInText(text: string, claimed: Claimed): Extraction {
  const entities = claimed.entities
    .flatMap(({ name, type, confidence }) =>
      placesOf(text, name, PLACES_MAX).map(
        ({ start, end }): FoundEntity => ({
          name: plainName(text.slice(start, end)),
          type: wordOf(type, "concept"),
          confidence: sureness(confidence),
          start,
          end,
        }),
      ),
    )
    .filter(({ name }) => normaliseName(name) !== "")
    .sort((a, b) => a.start - b.start || b.end - a.end);
  const kept = withoutTwins(entities).slice(0, ENTITIES_MAX);
  const relations = claimed.relations.flatMap((relation): FoundRelation[] => {
    const place = placesOf(text, relation.evidence, 1)[0];
    if (!place) return [];
    const source = nearest(kept, relation.source, place);
    const target = nearest(kept, relation.target, place);
    if (source === -1 || target === -1 || source === target) return [];
    const type = wordOf(relation.type, "related_to");
    return [{ source, target, type, confidence: sureness(relation.confidence), ...place }];
  });
  return { entities: kept, relations: relations.slice(0, RELATIONS_MAX) };
}

/** Whatever the case and the spaces. A name that is part of a longer word does not stand there. */
function placesOf(text: string, wanted: string, most: number): Place[] {
  const words = wanted
    .replaceAll(MARKS, " ")
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replaceAll(SYNTAX, "\\$&"));
  if (words.length === 0) return [];
  const isUnspaced = UNSPACED.test(wanted);
  const [before, after] = isUnspaced ? ["", ""] : ["(?<![\\p{L}\\p{N}])", "(?![\\p{L}\\p{N}])"];
  const pattern = new RegExp(`${before}${words.join(BETWEEN)}${after}`, "giu");
  const places: Place[] = [];
  for (const match of text.matchAll(pattern)) {
    places.push({ start: match.index, end: match.index + match[0].length });
    if (places.length === most) break;
  }
  return places;
}

/** The same name claimed twice, or with two types: the surer one stands. */
function withoutTwins(entities: readonly FoundEntity[]): FoundEntity[] {
  const best = new Map<string, FoundEntity>();
  for (const entity of entities) {
    const key = `${entity.start} ${entity.end}`;
    if ((best.get(key)?.confidence ?? 0) < entity.confidence) best.set(key, entity);
  }
  return [...best.values()];
}

/** The position of the mention of a name that stands nearest to where something is said of it; -1: there is none. */
function nearest(entities: readonly FoundEntity[], name: string, { start, end }: Place): number {
  const normalised = normaliseName(name);
  const distances = entities.map((entity) =>
    normaliseName(entity.name) === normalised
      ? Math.max(start - entity.end, entity.start - end, 0)
      : undefined,
  );
  const least = Math.min(...distances.filter((distance) => distance !== undefined));
  return distances.indexOf(least);
}

function plainName(text: string): string {
  return text.replaceAll(MARKS, "").replaceAll(/\s+/g, " ").trim();
}

/** Lower case, joined by underscores, as the port has it. */
function wordOf(type: string, otherwise: string): string {
  return (
    type
      .toLowerCase()
      .replaceAll(/[^a-z]+/g, "_")
      .replaceAll(/^_|_$/g, "")
      .slice(0, 60) || otherwise
  );
}

function sureness(confidence: number): number {
  return Math.min(Math.max(confidence, CONFIDENCE_MIN), 1);
}
