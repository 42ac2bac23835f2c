import { openDatabase } from "../../src/index.ts";
import { testQueueStore } from "./conformance.ts";

testQueueStore("SQLite in memory", async (clock) => ({ database: openDatabase(":memory:", { clock }) }));
