#!/usr/bin/env node
// Plain JavaScript without new syntax, so that an old Node.js can still read the sentence below.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const NODE_MAJOR_MIN = 24;
const major = Number(process.versions.node.split(".")[0]);

if (major < NODE_MAJOR_MIN) {
  console.error(
    `Quarry needs Node.js ${NODE_MAJOR_MIN} or newer; this is ${process.versions.node}. Run "npx quarry" in a checkout, or install a newer Node.js.`,
  );
  process.exitCode = 2;
} else {
  await keepCompiled();
  // A checkout runs its TypeScript as it is; an installed package has it compiled.
  const source = new URL("../src/cli/main.ts", import.meta.url);
  const compiled = new URL("../dist/cli/main.js", import.meta.url);
  const { main } = await import((existsSync(source) ? source : compiled).href);
  process.exitCode = await main(process.argv);
}

/** Starts twice as fast from the second time on. */
async function keepCompiled() {
  const { enableCompileCache } = await import("node:module");
  // In the user's own folder: others may write to the common one for temporary files.
  const own = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "quarry");
  process.env.NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE || own;
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
}
