import { testRagCrash } from "../rag/crash.ts";

testRagCrash({ jobs: 500, kills: 100, restarts: 5, timeoutMs: 900_000 }, ["Redis", "SQLite", "PostgreSQL"]);
