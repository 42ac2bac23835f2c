import type { Extraction, FoundEntity, FoundRelation } from "../entities.ts";
import { namesIn, type Span } from "./names.ts";
import { proseOf } from "./plain.ts";
import { type Mention, relationsIn } from "./relations.ts";
import { type Sentence, sentencesOf } from "./sentences.ts";
import { typeOf } from "./types.ts";

const ENTITIES_MAX = 60;
const RELATIONS_MAX = 60;

/** What a text is about, and how those things belong together, sentence by sentence. */
export function extractFrom(text: string): Extraction {
  const entities: FoundEntity[] = [];
  const relations: FoundRelation[] = [];
  for (const sentence of sentencesOf(proseOf(text))) {
    const room = ENTITIES_MAX - entities.length;
    if (room <= 0) break;
    const mentions = namesIn(sentence)
      .slice(0, room)
      .map((span) => mentionOf(text, sentence, span));
    for (const relation of relationsIn(sentence, mentions)) {
      if (relations.length >= RELATIONS_MAX) break;
      const source = relation.source + entities.length;
      const target = relation.target + entities.length;
      relations.push({ ...relation, source, target });
    }
    entities.push(...mentions.map(({ entity }) => entity));
  }
  return { entities, relations };
}

function mentionOf(text: string, sentence: Sentence, span: Span): Mention {
  const start = sentence[span.first]!.start;
  const end = sentence[span.last]!.end;
  // A name may go on behind a mark or on the next line.
  const name = text
    .slice(start, end)
    .replaceAll(/[*_~[\]!#\\`|]/g, "")
    .replaceAll(/\s+/g, " ")
    .replace(/[.,]$/, "");
  return { span, entity: { name, ...typeOf(name, sentence, span), start, end } };
}
