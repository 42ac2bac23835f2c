import { openPostgresTexts } from "../../../src/adapters/fulltext/postgres.ts";
import { openPostgres } from "../../../src/database/postgres.ts";
import { freshPostgres } from "../../support/postgres.ts";
import { testTextIndex } from "./conformance.ts";

testTextIndex("PostgreSQL", async () => {
  const { url, drop } = await freshPostgres();
  const database = openPostgres({ url });
  const index = await openPostgresTexts(database);
  return {
    index,
    close: async () => {
      await database.close();
      await drop();
    },
  };
});
