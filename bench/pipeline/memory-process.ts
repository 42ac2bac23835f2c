import { openQuarryContender } from "./quarry.ts";

/** Takes one file in a process of its own, so that its memory is nobody else's. */
const [folder, path] = process.argv.slice(2) as [string, string];
const quarry = await openQuarryContender({ name: "quarry", folder, upTo: "vector" });
await quarry.take([path]);
await quarry.close();
