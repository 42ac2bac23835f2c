import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServices } from "../support/services.ts";
import { BREAKS, type Break, brokenSource } from "./breaks.ts";

/**
 * Proves the checkers: applies one deliberate mistake after another to a copy of the source and shows that the
 * tests notice each. `node test/breaks/run.ts [part of a name]`.
 */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Installed packages, some hundred MB of them. */
const SERVERS = join(ROOT, "test/servers");
const wanted = process.argv[2] ?? "";
const chosen = BREAKS.filter(({ name }) => name.includes(wanted));
// Before anything is started.
for (const mistake of chosen) brokenSource(ROOT, mistake);

const services = await startServices({ redis: false });
let survived = 0;
try {
  for (const mistake of chosen) {
    const isCaught = await catches(mistake, services.postgresUrl);
    if (!isCaught) survived++;
    console.log(`${isCaught ? "caught  " : "SURVIVED"}  ${mistake.name}`);
  }
} finally {
  await services.stop();
}
console.log(`${chosen.length - survived} passed, ${survived} failed`);
process.exitCode = survived > 0 ? 1 : 0;

async function catches(mistake: Break, databaseUrl: string): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "quarry-break-"));
  try {
    for (const part of ["src", "test", "migrations", "package.json"])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true, filter: (path) => path !== SERVERS });
    symlinkSync(SERVERS, join(folder, "test/servers"));
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, mistake.file), brokenSource(ROOT, mistake));
    return (await runTests(folder, mistake.tests, databaseUrl)) !== 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A mistake may also make a test wait for ever: that is noticing too. */
function runTests(folder: string, tests: readonly string[], databaseUrl: string): Promise<number | null> {
  const child = spawn(process.execPath, ["--test", "--test-timeout=30000", "--test-force-exit", ...tests], {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, TEST_DATABASE_URL: databaseUrl },
  });
  return new Promise((resolve) => child.once("exit", resolve));
}
