import { startRedis } from "../../test/support/services.ts";
import { progress } from "../progress.ts";
import { defineSuite } from "../suite.ts";
import { drain } from "./drain.ts";
import { pickUp } from "./latency.ts";

export interface RagScene {
  /** A Redis of the benchmark's own. */
  readonly url: string;
  /** For the ledger, on a real disk. */
  readonly folder: string;
  readonly jobs: number;
  readonly rounds: number;
  readonly latencySamples: number;
}

export const ragSuite = defineSuite<RagScene>({
  measures: { drain, latency: pickUp },
  remark: "Quarry and BullMQ share one Redis and one client for it; handlers do nothing.",
  withScene: async ({ folder, isQuick }, work) => {
    const server = await startRedis();
    progress(server.description);
    try {
      const scale = isQuick
        ? { jobs: 1_000, rounds: 1, latencySamples: 10 }
        : { jobs: 20_000, rounds: 3, latencySamples: 300 };
      return await work({ url: server.url, folder, ...scale });
    } finally {
      await server.stop();
    }
  },
});
