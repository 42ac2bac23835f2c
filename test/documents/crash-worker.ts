import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/index.ts";
import { withPoints } from "../support/points.ts";
import { openPipeline, until } from "./parts.ts";

/** A process that works on documents, writes down every call of a model, and dies at a point it is told. */
const [url, folder, point] = process.argv.slice(2) as [
  string,
  string,
  `before ${string}` | `after ${string}` | "",
];

const { database, points } = withPoints(openDatabase(url));
const pipeline = await openPipeline({ database, url, folder, close: async () => undefined });
pipeline.calls.before = (step, text) =>
  appendFileSync(join(folder, "calls.log"), `${JSON.stringify([step, text])}\n`);

if (point) void points.hold(point).reached.then(() => process.kill(process.pid, "SIGKILL"));
const crew = await pipeline.crew();
await until(async () => (await pipeline.documents.progress()).open === 0);
await crew.stop();
await pipeline.close();
await database.close();
process.stdout.write("done\n");
