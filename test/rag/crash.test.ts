import { testRagCrash } from "./crash.ts";

/** The long version is in test/crash. */
testRagCrash({ jobs: 50, kills: 5, restarts: 1, timeoutMs: 120_000 }, ["Redis", "SQLite"]);
