import { setTimeout } from "node:timers/promises";
import { machineMs } from "../queue/contender.ts";
import { latencyContenders, type PushOrder, WARM_UP_SAMPLES } from "./latency.ts";

/** Contenders take turns in blocks: short enough to meet the same machine, long enough to be alone in it. */
const BLOCK = 20;
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 60;

const order = JSON.parse(process.argv[2]!) as PushOrder;
const connections = await Promise.all(latencyContenders(order).map((contender) => contender.connect()));
const last = order.samples + WARM_UP_SAMPLES;
for (let start = 0; start < last; start += BLOCK) {
  for (const connection of connections) {
    for (let n = start; n < Math.min(start + BLOCK, last); n++) {
      await setTimeout(PAUSE_MIN_MS + Math.random() * (PAUSE_MAX_MS - PAUSE_MIN_MS));
      await connection.addOne({ n, sentAtMs: machineMs() });
    }
  }
}
for (const connection of connections) await connection.close();
