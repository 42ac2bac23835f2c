import type { Figure } from "../figures.ts";
import { claimAtBacklog } from "./backlog.ts";
import { exclusiveGroups } from "./groups.ts";
import { pickUpLatency } from "./latency.ts";
import type { Scene } from "./scene.ts";
import { settleWithSiblings } from "./siblings.ts";
import { postgresThroughput, sqliteThroughput } from "./throughput.ts";
import { twoProcessDrain } from "./two-processes.ts";

/** In the order they run; the names are what `--only` takes. */
export const queueMeasures: Readonly<Record<string, (scene: Scene) => Promise<Figure[]>>> = {
  postgres: postgresThroughput,
  processes: twoProcessDrain,
  sqlite: sqliteThroughput,
  latency: pickUpLatency,
  backlog: claimAtBacklog,
  siblings: settleWithSiblings,
  groups: exclusiveGroups,
};
