import { openDatabase } from "../../src/index.ts";
import { openDesk } from "./desk.ts";

/** Takes a job and never ends it. Run as a program, with the database's URL. */
const url = process.argv[2]!;
const database = openDatabase(url);
const desk = await openDesk(
  { database, url, folder: "", close: async () => undefined },
  { staleMs: 3_600_000 },
);
desk.before = () => {
  process.stdout.write("started\n");
  return new Promise(() => undefined);
};
await desk.work();
