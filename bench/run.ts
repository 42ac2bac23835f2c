import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { type Figure, formatFigures, isReached, writeFigures } from "./figures.ts";
import { httpSuite } from "./http/suite.ts";
import { itemsSuite } from "./items/suite.ts";
import { pipelineSuite } from "./pipeline/suite.ts";
import { progress } from "./progress.ts";
import { queueSuite } from "./queue/suite.ts";
import { ragSuite } from "./rag/suite.ts";
import { storesSuite } from "./stores/suite.ts";
import type { Suite } from "./suite.ts";
import { tasksSuite } from "./tasks/suite.ts";

const USAGE =
  "usage: node bench/run.ts [queue] [pipeline] [http] [items] [rag] [tasks] [stores] [--quick] [--only measure]";
const HERE = import.meta.dirname;
const SUITES: Readonly<Record<string, Suite>> = {
  queue: queueSuite,
  pipeline: pipelineSuite,
  http: httpSuite,
  items: itemsSuite,
  rag: ragSuite,
  tasks: tasksSuite,
  stores: storesSuite,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
});
const names = positionals.length > 0 ? positionals : suitesWith(values.only);
for (const name of names) {
  const known = SUITES[name];
  if (!known) fail(`there is no bench ${name}: ${Object.keys(SUITES).join(", ")}`);
  if (values.only !== undefined && !known.measures.includes(values.only))
    fail(`bench ${name} has no measure ${values.only}: ${known.measures.join(", ")}`);
}

installPeers();
for (const name of names) {
  const suite = SUITES[name]!;
  const figures = await inFolder((folder) => suite.run({ folder, isQuick: values.quick }, values.only));
  process.stdout.write(`${formatFigures(figures)}\n`);
  const missed = figures.filter((figure) => !isReached(figure)).length;
  process.stdout.write(`\n${missed === 0 ? "Every goal is reached." : `${missed} goals are not reached.`}\n`);
  process.stdout.write(`${suite.remark} Only the ratios of one run count.\n`);
  if (values.only === undefined && !values.quick) await keep(name, figures);
}

async function keep(name: string, figures: readonly Figure[]): Promise<void> {
  const path = join(HERE, "results", `${name}.json`);
  await writeFigures(path, figures);
  process.stdout.write(`Written to ${relative(process.cwd(), path)}\n`);
}

/** Files stay in this checkout: the system's folder for temporary files may be in memory. */
async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = join(HERE, ".data");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function suitesWith(measure: string | undefined): string[] {
  const all = Object.keys(SUITES);
  const having = all.filter((name) => measure === undefined || SUITES[name]!.measures.includes(measure));
  return having.length > 0 ? having : all;
}

/** npm writes its own list last: an installation that broke off, or that is older than ours, is done again. */
function installPeers(): void {
  const installed = statSync(join(HERE, "node_modules", ".package-lock.json"), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs >= statSync(join(HERE, "package-lock.json")).mtimeMs) return;
  progress("installing the peers under bench/");
  const args = ["ci", "--prefix", HERE, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { stdio: ["ignore", 2, 2] });
  if (status !== 0) fail(`npm ${args.join(" ")} ended with ${status}`);
}

function fail(problem: string): never {
  process.stderr.write(`${problem}\n${USAGE}\n`);
  process.exit(2);
}
