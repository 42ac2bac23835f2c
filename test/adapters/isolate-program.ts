import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { besides, Isolates } from "../../src/adapters/isolate.ts";

/** A program of its own for the tests: leaves an isolate idle, or hanging once the file that is named is there. */
const isolates = new Isolates({
  name: "the hazard",
  module: besides(import.meta.url, "hazards"),
  size: 1,
  deadlineMs: 60_000,
  memoryMb: 256,
  setup: { greeting: "hello" },
});
const marker = process.argv[2];
const pid = await isolates.call<number>("pid", undefined);
if (marker) {
  void isolates.call("hang", marker);
  while (!existsSync(marker)) await sleep(20);
}
process.stdout.write(`${pid}\n`);
