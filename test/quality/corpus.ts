import { BEES } from "./corpus/bees.ts";
import { BICYCLES } from "./corpus/bicycles.ts";
import { BREAD } from "./corpus/bread.ts";
import { CHESS } from "./corpus/chess.ts";
import { COFFEE } from "./corpus/coffee.ts";
import { GARDENS } from "./corpus/gardens.ts";
import { GLACIERS } from "./corpus/glaciers.ts";
import { LIGHTHOUSES } from "./corpus/lighthouses.ts";
import { PRINTING } from "./corpus/printing.ts";
import { RAILWAYS } from "./corpus/railways.ts";
import { SKY } from "./corpus/sky.ts";
import { SLEEP } from "./corpus/sleep.ts";

export interface Passage {
  /** "bees/3" */
  readonly id: string;
  readonly text: string;
}

export interface PassageQuestion {
  readonly question: string;
  /** The one passage that answers it. */
  readonly passageId: string;
}

const TOPICS = [
  BEES,
  BICYCLES,
  BREAD,
  CHESS,
  COFFEE,
  GARDENS,
  GLACIERS,
  LIGHTHOUSES,
  PRINTING,
  RAILWAYS,
  SKY,
  SLEEP,
];

const NUMBERED = TOPICS.flatMap(({ name, passages }) =>
  passages.map((passage, position) => ({ id: `${name}/${position + 1}`, ...passage })),
);

/** Short texts on twelve topics, made to measure retrieval: ten of each topic are near one another. */
export const PASSAGES: readonly Passage[] = NUMBERED.map(({ id, text }) => ({ id, text }));

/** Mostly paraphrases: a search for the words alone misses many of them. */
export const PASSAGE_QUESTIONS: readonly PassageQuestion[] = NUMBERED.flatMap(({ id, asks = [] }) =>
  asks.map((question) => ({ question, passageId: id })),
);
