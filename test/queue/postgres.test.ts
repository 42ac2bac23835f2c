import { openPostgres } from "../../src/database/postgres.ts";
import { freshPostgres } from "../support/postgres.ts";
import { testQueueStore } from "./conformance.ts";

testQueueStore("PostgreSQL", async (clock) => {
  const { url, drop } = await freshPostgres();
  const now = () => new Date(clock.now()).toISOString();
  return { database: openPostgres({ url, clock, now }), drop };
});
