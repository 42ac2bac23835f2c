import { testCrash } from "../support/crash/suite.ts";

testCrash({ tasks: 5_000, kills: 200, stops: 20, terminations: 50, restarts: 3, timeoutMs: 900_000 });
