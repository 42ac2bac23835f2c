import { join } from "node:path";
import { openLocalEmbedder } from "../../src/adapters/embed/local.ts";
import type { Embedder } from "../../src/adapters/embed.ts";
import { compareRates, type Figure, inTurn, median, secondsOf } from "../figures.ts";
import { progress } from "../progress.ts";
import type { Amounts, Contender } from "./contender.ts";
import { writeVariant } from "./corpus.ts";
import { openLangChain } from "./langchain.ts";
import { openPlain } from "./plain.ts";
import { openQuarryContender } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** Enough texts to tell how fast the embedder is when nothing else runs. */
const EMBEDDED_ALONE = 64;
/** No round has as many copies. */
const WARM_UP_COPY = 10_000;

const BESIDE_PLAIN =
  "the same readers, chunker, models and stores in a loop without queues: nothing is kept for a restart, a retry or a second copy";
const BESIDE_LANGCHAIN =
  "the same embedder; LangChain keeps vectors in memory and no words, files, states or queue, and reads with its own loaders";
const BESIDE_EMBEDDER =
  "the embedder alone, given the same texts: the ratio is the share of time that embedding takes";

/** Copies of the samples, each with a text of its own, from files to the graph and from files to the index. */
export async function samplesThroughput({ folder, scale }: Scene): Promise<Figure[]> {
  const embedder = await openLocalEmbedder();
  const heard = hearing(embedder);
  const whole = await openQuarryContender({
    name: "quarry",
    folder: join(folder, "whole"),
    upTo: "graphrag",
  });
  const indexed = await openQuarryContender({
    name: "quarry, up to the index",
    folder: join(folder, "indexed"),
    upTo: "vector",
  });
  const plain = await openPlain({
    name: "plain loop",
    folder: join(folder, "plain"),
    embedder: heard.embedder,
    upTo: "graphrag",
    isOverlapped: true,
  });
  const langChain = await openLangChain(embedder);
  const contenders = [whole, plain, indexed, langChain];
  const rounds: Round[] = [];
  try {
    for (let round = 1; round <= scale.rounds; round++) {
      const files = join(folder, "files");
      const warmUp = await writeVariant(files, WARM_UP_COPY + round);
      const paths = await writeCopies(files, { first: (round - 1) * scale.copiesPerRound + 1, ...scale });
      const seconds = new Map<Contender, number>();
      for (const contender of inTurn(contenders, round)) {
        // Models and readers that had nothing to do were ended.
        await contender.take(warmUp.slice(0, 1));
        seconds.set(contender, await secondsOf(() => contender.take(paths)));
        const rate = paths.length / seconds.get(contender)!;
        progress(`${contender.name}, round ${round} of ${scale.rounds}: ${rate.toFixed(2)} documents/s`);
      }
      const texts = heard.texts.splice(0);
      const some = texts.slice(0, EMBEDDED_ALONE);
      const embedding = await secondsOf(() => embedder.embed(some, new AbortController().signal));
      rounds.push({ documents: paths.length, seconds, embeddedPerSecond: some.length / embedding });
    }
    const perDocument = shares(await whole.amounts());
    return figures({ whole, plain, indexed, langChain }, rounds, perDocument);
  } finally {
    for (const contender of contenders) await contender.close();
    await embedder.close();
  }
}

interface Round {
  readonly documents: number;
  readonly seconds: ReadonlyMap<Contender, number>;
  readonly embeddedPerSecond: number;
}

function figures(
  { whole, plain, indexed, langChain }: Record<"whole" | "plain" | "indexed" | "langChain", Contender>,
  rounds: readonly Round[],
  perDocument: Amounts,
): Figure[] {
  const rate = (who: Contender) =>
    median(rounds.map(({ documents, seconds }) => documents / seconds.get(who)!));
  const besidePlain = (what: keyof Amounts, goal: number | null) =>
    compareRates({
      measure: `samples to graph, ${what}`,
      unit: `${what}/s`,
      quarry: rate(whole) * perDocument[what],
      peer: plain.name,
      peerValue: rate(plain) * perDocument[what],
      goal,
      ...(goal !== null && { note: BESIDE_PLAIN }),
    });
  return [
    besidePlain("documents", 0.91),
    besidePlain("pages", null),
    besidePlain("chunks", null),
    compareRates({
      measure: "samples to index, documents",
      unit: "documents/s",
      quarry: rate(indexed),
      peer: langChain.name,
      peerValue: rate(langChain),
      goal: 1.5,
      note: BESIDE_LANGCHAIN,
    }),
    compareRates({
      measure: "samples to index, chunks",
      unit: "chunks/s",
      quarry: rate(indexed) * perDocument.chunks,
      peer: "embedder alone",
      peerValue: median(rounds.map(({ embeddedPerSecond }) => embeddedPerSecond)),
      goal: null,
      note: BESIDE_EMBEDDER,
    }),
  ];
}

function shares({ documents, pages, chunks }: Amounts): Amounts {
  progress(`${documents} documents, ${pages} pages, ${chunks} chunks`);
  return { documents: 1, pages: pages / documents, chunks: chunks / documents };
}

async function writeCopies(
  folder: string,
  { first, copiesPerRound }: { first: number; copiesPerRound: number },
): Promise<string[]> {
  const paths: string[] = [];
  for (let copy = first; copy < first + copiesPerRound; copy++)
    paths.push(...(await writeVariant(folder, copy)));
  return paths;
}

/** Remembers what it was asked. */
function hearing(embedder: Embedder): { embedder: Embedder; texts: string[] } {
  const texts: string[] = [];
  const embed: Embedder["embed"] = (asked, signal) => {
    texts.push(...asked);
    return embedder.embed(asked, signal);
  };
  return { embedder: { ...embedder, embed }, texts };
}
