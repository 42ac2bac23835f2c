import { join } from "node:path";
import { openLocalEmbedder } from "../../src/adapters/embed/local.ts";
import { compareRates, compareTimes, type Figure, secondsOf } from "../figures.ts";
import { progress } from "../progress.ts";
import { writeCopy } from "./corpus.ts";
import { openLangChain } from "./langchain.ts";
import { openQuarryContender } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** The samples as they are, many times under other names: what was embedded and extracted once is not done again. */
export async function identicalCopies({ folder, scale }: Scene): Promise<Figure[]> {
  const place = join(folder, "copies");
  const embedder = await openLocalEmbedder();
  const langChain = await openLangChain(embedder);
  const quarry = await openQuarryContender({ name: "quarry", folder: place, upTo: "graphrag" });
  try {
    const same: string[][] = [];
    for (let copy = 1; copy <= scale.sameCopies; copy++)
      same.push(await writeCopy(join(folder, "same"), copy));
    const [first, ...others] = same as [string[], ...string[][]];
    const firstSeconds = await secondsOf(() => quarry.take(first));
    const otherSeconds = await secondsOf(() => quarry.take(others.flat()));
    const { chunks } = await quarry.amounts();
    const [row] = await quarry.database.query(
      "select count(*) as texts from step_cache where step = 'embed'",
    );
    const embedded = Number(row!.texts);
    const all = same.flat();
    const rate = all.length / (firstSeconds + otherSeconds);
    const peerRate = all.length / (await secondsOf(() => langChain.take(all)));
    progress(
      `quarry ${rate.toFixed(2)} documents/s, LangChain.js ${peerRate.toFixed(2)}; ${embedded} texts embedded`,
    );
    return [
      compareRates({
        measure: `${scale.sameCopies} identical copies, documents`,
        unit: "documents/s",
        quarry: rate,
        peer: langChain.name,
        peerValue: peerRate,
        goal: 1.5,
        note: "Quarry up to the graph, with models that are not loaded yet, LangChain.js up to its store; it embeds every copy again",
      }),
      compareRates({
        measure: `${scale.sameCopies} identical copies, files to graph`,
        unit: "documents/s",
        quarry: others.flat().length / otherSeconds,
        peer: "quarry, the first copy",
        peerValue: first.length / firstSeconds,
        goal: null,
        note: "the first copy finds models that are not loaded yet",
      }),
      compareTimes({
        measure: `${scale.sameCopies} identical copies, texts embedded`,
        unit: "texts",
        quarry: embedded,
        peer: "chunks",
        peerValue: chunks,
        goal: null,
      }),
    ];
  } finally {
    await quarry.close();
    await langChain.close();
    await embedder.close();
  }
}
