import { workHere } from "../worker-processes.ts";
import { ragContenders } from "./contenders.ts";
import type { DrainOrder } from "./drain.ts";

const order = JSON.parse(process.argv[2]!) as DrainOrder;
const connection = await ragContenders(order)[order.contender]!.connect();
// It is connected when it says that it is ready.
await connection.countLeft();
await workHere(connection);
