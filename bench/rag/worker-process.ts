import { once } from "node:events";
import { ragContenders } from "./contenders.ts";
import type { DrainOrder, DrainReport } from "./drain.ts";

const REPORT_EVERY_MS = 5;

const order = JSON.parse(process.argv[2]!) as DrainOrder;
const connection = await ragContenders(order)[order.contender]!.connect();
const say = (report: DrainReport) => process.send!(report);
await connection.countLeft();

say("ready");
await once(process, "message");
let handled = 0;
const work = await connection.work(() => {
  handled++;
});
const reporter = setInterval(() => say({ handled }), REPORT_EVERY_MS);
await once(process, "message");
clearInterval(reporter);
await work.stop();
say("stopped");
await connection.close();
process.disconnect();
