import { join } from "node:path";
import { compareRates, compareTimes, type Figure } from "../figures.ts";
import { progress } from "../progress.ts";
import { writeCopy } from "./corpus.ts";
import { openQuarryContender } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** The same files again under other names: what was embedded and extracted once is not done again. */
export async function identicalCopies({ folder, scale }: Scene): Promise<Figure[]> {
  const place = join(folder, "copies");
  const quarry = await openQuarryContender({ name: "quarry", folder: place, upTo: "graphrag" });
  try {
    const rateOf = async (paths: readonly string[]) => {
      const startedAt = performance.now();
      await quarry.take(paths);
      return (paths.length / (performance.now() - startedAt)) * 1_000;
    };
    const first = await rateOf(await writeCopy(join(folder, "same"), 1));
    const more: string[] = [];
    for (let copy = 2; copy <= scale.sameCopies; copy++)
      more.push(...(await writeCopy(join(folder, "same"), copy)));
    const rest = await rateOf(more);
    const { chunks } = await quarry.amounts();
    const [row] = await quarry.database.query(
      "select count(*) as texts from step_cache where step = 'embed'",
    );
    const embedded = Number(row!.texts);
    progress(
      `first copy ${first.toFixed(2)} documents/s, others ${rest.toFixed(2)}; ${embedded} texts embedded`,
    );
    return [
      compareRates({
        measure: `${scale.sameCopies} identical copies, files to graph`,
        unit: "documents/s",
        quarry: rest,
        peer: "quarry, the first copy",
        peerValue: first,
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
  }
}
