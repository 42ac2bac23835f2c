import { once } from "node:events";
import { processContenders, type WorkerOrder, type WorkerReport } from "./two-processes.ts";

const REPORT_EVERY_MS = 5;

const order = JSON.parse(process.argv[2]!) as WorkerOrder;
const connection = await processContenders(order.url)[order.contender]!.connect();
const say = (report: WorkerReport) => process.send!(report);

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
