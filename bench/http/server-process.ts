import { once } from "node:events";
import { HttpServer } from "../../src/http/server.ts";
import { createLog, openQuarry } from "../../src/index.ts";
import { serveBare } from "./bare.ts";
import { MODEL } from "./model.ts";
import { KEY, type ServerOrder, type Serving } from "./serving.ts";

/** More than is asked for here: what is measured is the work, not the limit. */
const REQUESTS_PER_MINUTE = 10_000_000;

const order = JSON.parse(process.argv[2]!) as ServerOrder;
const serving = order.kind === "quarry" ? await serveQuarry(order) : await serveBare(order.url);
// Whoever started this has gone.
process.once("disconnect", () => process.exit());
process.send!(serving.url);
await once(process, "message");
await serving.stop();
process.exit();

/** As `quarry serve` does; vectors are made elsewhere. */
async function serveQuarry({ url, folder }: ServerOrder): Promise<Serving> {
  const quarry = await openQuarry({
    dataFolder: folder,
    databaseUrl: url,
    embeddingModel: MODEL,
    port: 0,
    apiKey: KEY,
    rateLimit: REQUESTS_PER_MINUTE,
  });
  const { settings } = quarry;
  const server = await new HttpServer({
    quarry,
    settings,
    log: createLog({ level: settings.logLevel }),
  }).listen();
  return {
    url: server.url,
    stop: async () => {
      await server.stop();
      await quarry.close();
    },
  };
}
