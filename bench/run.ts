import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { startServices } from "../test/support/services.ts";
import { type Figure, formatFigures, isReached, writeFigures } from "./figures.ts";
import { createBenchDatabase } from "./postgres.ts";
import { progress } from "./progress.ts";
import { FULL_SCALE, QUICK_SCALE, type Scene } from "./queue/scene.ts";
import { queueMeasures } from "./queue/suite.ts";

const USAGE = "usage: node bench/run.ts [queue] [--quick] [--only measure]";
const HERE = import.meta.dirname;
const SUITES: Readonly<Record<string, typeof queueMeasures>> = { queue: queueMeasures };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
});
const names = positionals.length > 0 ? positionals : Object.keys(SUITES);
for (const name of names) {
  const known = SUITES[name];
  if (!known) fail(`there is no bench ${name}: ${Object.keys(SUITES).join(", ")}`);
  if (values.only !== undefined && !known[values.only])
    fail(`bench ${name} has no measure ${values.only}: ${Object.keys(known).join(", ")}`);
}

installPeers();
for (const name of names) {
  const figures = await withScene((scene) => runSuite(SUITES[name]!, scene));
  process.stdout.write(`${formatFigures(figures)}\n`);
  const missed = figures.filter((figure) => !isReached(figure)).length;
  process.stdout.write(`\n${missed === 0 ? "Every goal is reached." : `${missed} goals are not reached.`}\n`);
  process.stdout.write("plainjob and Quarry both run on node:sqlite. Only the ratios of one run count.\n");
  if (values.only !== undefined) continue;
  const path = join(HERE, "results", `${name}.json`);
  await writeFigures(path, figures);
  process.stdout.write(`Written to ${relative(process.cwd(), path)}\n`);
}

async function runSuite(measures: typeof queueMeasures, scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, measure] of Object.entries(measures)) {
    if (values.only !== undefined && values.only !== name) continue;
    progress(`${name}:`);
    figures.push(...(await measure(scene)));
  }
  return figures;
}

/** SQLite files stay in this checkout: the system's folder for temporary files may be in memory. */
async function withScene<T>(work: (scene: Scene) => Promise<T>): Promise<T> {
  const services = await startServices({ postgres: true, redis: false });
  progress(services.description);
  const folder = join(HERE, ".data");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  try {
    const database = await createBenchDatabase(services.postgresUrl);
    try {
      const scale = values.quick ? QUICK_SCALE : FULL_SCALE;
      return await work({ postgresUrl: database.url, folder, scale });
    } finally {
      await database.drop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
    await services.stop();
  }
}

/** npm writes this file last, so an installation that broke off is done again. */
function installPeers(): void {
  if (existsSync(join(HERE, "node_modules", ".package-lock.json"))) return;
  progress("installing the peers under bench/");
  const args = ["ci", "--prefix", HERE, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { stdio: ["ignore", 2, 2] });
  if (status !== 0) fail(`npm ${args.join(" ")} ended with ${status}`);
}

function fail(problem: string): never {
  process.stderr.write(`${problem}\n${USAGE}\n`);
  process.exit(2);
}
