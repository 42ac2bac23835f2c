import { startServices } from "../../test/support/services.ts";
import { progress } from "../progress.ts";
import { defineSuite } from "../suite.ts";
import { embeddingThroughput } from "./embedding.ts";
import { remoteWorker } from "./remote.ts";
import { requestRates } from "./requests.ts";
import { FULL_SCALE, QUICK_SCALE, type Scene } from "./scene.ts";

export const httpSuite = defineSuite<Scene>({
  measures: { requests: requestRates, embedding: embeddingThroughput, remote: remoteWorker },
  remark: "Servers, the load on them and workers elsewhere are processes of their own, on one machine.",
  withScene: async ({ folder, isQuick }, work) => {
    const services = await startServices({ postgres: true, redis: false, isSynced: !isQuick });
    progress(services.description);
    try {
      const scale = isQuick ? QUICK_SCALE : FULL_SCALE;
      return await work({ postgresUrl: services.postgresUrl, folder, scale });
    } finally {
      await services.stop();
    }
  },
});
