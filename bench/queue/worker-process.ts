import { workHere } from "../worker-processes.ts";
import { processContenders, type WorkerOrder } from "./two-processes.ts";

const order = JSON.parse(process.argv[2]!) as WorkerOrder;
await workHere(await processContenders(order.url)[order.contender]!.connect());
