import { testEntityLocks } from "../agents/lock-suite.ts";

testEntityLocks({ processes: 12, tasks: 2_000, entities: 50, kills: 50, timeoutMs: 900_000 });
