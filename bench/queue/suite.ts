import { startServices } from "../../test/support/services.ts";
import { createBenchDatabase } from "../postgres.ts";
import { progress } from "../progress.ts";
import { defineSuite } from "../suite.ts";
import { claimAtBacklog } from "./backlog.ts";
import { exclusiveGroups } from "./groups.ts";
import { pickUpLatency } from "./latency.ts";
import { FULL_SCALE, QUICK_SCALE, type Scene } from "./scene.ts";
import { settleWithSiblings } from "./siblings.ts";
import { postgresThroughput, sqliteThroughput } from "./throughput.ts";
import { twoProcessDrain } from "./two-processes.ts";

export const queueSuite = defineSuite<Scene>({
  measures: {
    postgres: postgresThroughput,
    processes: twoProcessDrain,
    sqlite: sqliteThroughput,
    latency: pickUpLatency,
    backlog: claimAtBacklog,
    siblings: settleWithSiblings,
    groups: exclusiveGroups,
  },
  remark: "plainjob and Quarry both run on node:sqlite.",
  withScene: async ({ folder, isQuick }, work) => {
    const services = await startServices({ postgres: true, redis: false, isSynced: !isQuick });
    progress(services.description);
    try {
      const database = await createBenchDatabase(services.postgresUrl);
      try {
        const scale = isQuick ? QUICK_SCALE : FULL_SCALE;
        return await work({ postgresUrl: database.url, folder, scale });
      } finally {
        await database.drop();
      }
    } finally {
      await services.stop();
    }
  },
});
