import { extractFrom } from "../../src/adapters/entities/find.ts";
import type { ChatRequest } from "./model-chat.ts";

export interface Claims {
  readonly entities: readonly object[];
  readonly relations: readonly object[];
}

/** What a model answers that was asked for entities: what `read` finds in each of the texts it was shown. */
export function entitiesAnswer(asked: ChatRequest, read: (text: string) => Claims = byRules): string {
  const texts = textsIn(asked).map((text, index) => ({ text: index + 1, ...read(text) }));
  return JSON.stringify({ texts });
}

/** In their order, as they stand between the fences. */
export function textsIn({ system, messages }: ChatRequest): string[] {
  const fence = /<<<([0-9a-f]{24}) /.exec(system)![1]!;
  const quoted = new RegExp(`<<<${fence} \\d+\\n([\\s\\S]*?)\\n${fence}>>>`, "g");
  return [...messages[0]!.content.matchAll(quoted)].map((match) => match[1]!);
}

/** A model that reads as well as the local rules do. */
function byRules(text: string): Claims {
  const { entities, relations } = extractFrom(text);
  return {
    entities: entities.map(({ name, type, confidence }) => ({ name, type, confidence })),
    relations: relations.map(({ source, target, type, confidence, start, end }) => ({
      source: entities[source]!.name,
      target: entities[target]!.name,
      type,
      confidence,
      evidence: text.slice(start, end),
    })),
  };
}

export function nothing(): Claims {
  return { entities: [], relations: [] };
}
