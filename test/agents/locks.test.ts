import { testEntityLocks } from "./lock-suite.ts";

testEntityLocks({ processes: 4, tasks: 300, entities: 15, kills: 5, timeoutMs: 120_000 });
