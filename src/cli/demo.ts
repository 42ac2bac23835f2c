import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import type { Clock } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { openDatabase } from "../database/open.ts";
import { QuarryError } from "../errors.ts";
import { defineQueue } from "../queue/declaration.ts";
import { createJanitor } from "../queue/janitor.ts";
import { prepareQueue } from "../queue/prepare.ts";
import { openQueue } from "../queue/store.ts";
import { createWorker } from "../queue/worker.ts";
import { bar, createOutput, type Output, table } from "./output.ts";

const LEASE_MS = 1_000;
const TASK_MS = 2;
const ROWS_PER_CALL = 5_000;

const demoTasks = defineQueue<{ number: number }>({
  name: "demo",
  table: "demo_tasks",
  key: { column: "id", type: "integer" },
  columns: {
    status: "status",
    token: "lease_token",
    lease: "lease_until",
    runAfter: "run_after",
    attempts: "attempts",
    error: "error",
    worker: "worker_id",
  },
  attempts: { count: "claims", max: 10 },
  lease: { ms: LEASE_MS },
  reads: ["number"],
});

/** The database itself writes down every ending, so that nobody has to be believed. */
const SCHEMA = [
  `create table demo_tasks (
    id integer primary key, number integer not null, status text not null default 'pending',
    lease_token integer not null default 0, lease_until text, run_after text,
    attempts integer not null default 0, error text, worker_id text)`,
  "create table demo_endings (task_id integer not null, worker_id text)",
  `create trigger demo_ended after update of status on demo_tasks
    when new.status in ('completed', 'failed') and old.status not in ('completed', 'failed')
    begin insert into demo_endings values (new.id, new.worker_id); end`,
];

export interface DemoReport {
  readonly tasks: number;
  readonly workers: number;
  readonly completed: number;
  readonly failed: number;
  /** Tasks that a killed worker held and others finished. */
  readonly rescued: number;
  readonly endedTwice: number;
  readonly neverEnded: number;
  readonly seconds: number;
  readonly isExactlyOnce: boolean;
}

export function addDemo(program: Command, clock: Clock): void {
  program
    .command("demo")
    .description(
      "Works tasks in several processes on SQLite, kills one half-way, and shows that every task ended exactly once.",
    )
    .option("--tasks <count>", "how many tasks", wholeNumber, 10_000)
    .option("--workers <count>", "how many worker processes (2 to 16)", wholeNumber, 2)
    .option("--json", "print the result as one JSON value", false)
    .addHelpText("after", "\nExample:\n  quarry demo --tasks 10000 --workers 2")
    .action(async (options: { tasks: number; workers: number; json: boolean }) => {
      if (options.workers < 2 || options.workers > 16) {
        throw new QuarryError("invalid_input", "--workers takes 2 to 16: one is killed, another goes on");
      }
      const output = createOutput({ json: options.json, monotonic: () => clock.monotonic() });
      const report = await runDemo({ ...options, output, clock });
      output.result(report, summary(report));
      if (!report.isExactlyOnce) process.exitCode = 1;
    });
  program
    .command("demo-worker <file>", { hidden: true })
    .description("One worker process of the demo.")
    .action(runDemoWorker);
}

async function runDemo(options: {
  tasks: number;
  workers: number;
  output: Output;
  clock: Clock;
}): Promise<DemoReport> {
  const { tasks, output, clock } = options;
  const folder = await mkdtemp(join(tmpdir(), "quarry-demo-"));
  const file = join(folder, "demo.db");
  const database = openDatabase(file);
  const children: ChildProcess[] = [];
  const interrupted = new AbortController();
  const onInterrupt = () => interrupted.abort();
  process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  try {
    for (const sql of SCHEMA) await database.query(sql);
    await prepareQueue(database, demoTasks);
    await enqueueTasks(database, tasks);
    output.line(`${count(tasks)} tasks are queued in ${file}`);
    const startedAt = clock.monotonic();
    for (let n = 0; n < options.workers; n++) children.push(startWorker(file));
    output.line(`worker processes ${children.map((child) => child.pid).join(" and ")} are at work`);
    const janitor = createJanitor({ database, queues: [demoTasks], everyMs: 250 }).start();
    const onHalfWay = () => killOne(children[0]!, database, output);
    await watch(database, { tasks, output, clock, signal: interrupted.signal, onHalfWay }).finally(() =>
      janitor.stop(),
    );
    return await report(database, options, (clock.monotonic() - startedAt) / 1_000);
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
    await Promise.all(children.map(stopWorker));
    await database.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function enqueueTasks(database: Database, tasks: number): Promise<void> {
  const store = openQueue(database, demoTasks);
  for (let first = 0; first < tasks; first += ROWS_PER_CALL) {
    const length = Math.min(ROWS_PER_CALL, tasks - first);
    await store.enqueue(Array.from({ length }, (_unused, n) => ({ number: first + n })));
  }
}

async function watch(
  database: Database,
  options: {
    tasks: number;
    output: Output;
    clock: Clock;
    signal: AbortSignal;
    onHalfWay: () => Promise<void>;
  },
): Promise<void> {
  const { tasks, output, clock } = options;
  const store = openQueue(database, demoTasks);
  const startedAt = clock.monotonic();
  let isHalfWay = false;
  for (;;) {
    const counts = await store.countByStatus();
    const ended = (counts.get("completed") ?? 0) + (counts.get("failed") ?? 0);
    const perSecond = Math.round(ended / Math.max(0.001, (clock.monotonic() - startedAt) / 1_000));
    output.progress(`${bar(ended, tasks)} ${count(ended)} of ${count(tasks)}, ${count(perSecond)}/s`);
    if (!isHalfWay && ended >= tasks / 2) {
      isHalfWay = true;
      await options.onHalfWay();
    }
    if (ended >= tasks) return;
    if (options.signal.aborted) throw new QuarryError("shutting_down", "the demo was interrupted");
    await sleep(25);
  }
}

async function killOne(victim: ChildProcess, database: Database, output: Output): Promise<void> {
  victim.kill("SIGKILL");
  await exited(victim);
  const sql = `select count(*) as held from demo_tasks where status = 'processing' and worker_id = 'pid-${victim.pid}'`;
  const [row] = await database.query(sql);
  output.line(`worker ${victim.pid} was killed half-way with ${count(Number(row!.held))} tasks in its hands`);
}

async function report(
  database: Database,
  options: { tasks: number; workers: number },
  seconds: number,
): Promise<DemoReport> {
  const number = async (sql: string) => Number((await database.query(sql))[0]!.n);
  const completed = await number("select count(*) as n from demo_tasks where status = 'completed'");
  const failed = await number("select count(*) as n from demo_tasks where status = 'failed'");
  const rescued = await number("select count(*) as n from demo_tasks where attempts > 1");
  const endedTwice = await number(
    "select count(*) as n from (select 1 from demo_endings group by task_id having count(*) > 1)",
  );
  const neverEnded = await number(
    "select count(*) as n from demo_tasks where id not in (select task_id from demo_endings)",
  );
  const isExactlyOnce = completed === options.tasks && endedTwice === 0 && neverEnded === 0;
  const { tasks, workers } = options;
  return { tasks, workers, completed, failed, rescued, endedTwice, neverEnded, seconds, isExactlyOnce };
}

function summary(result: DemoReport): string {
  const rows = table([
    ["completed", `${count(result.completed)} of ${count(result.tasks)}`],
    ["rescued from the killed worker", count(result.rescued)],
    ["ended twice", count(result.endedTwice)],
    ["never ended", count(result.neverEnded)],
    ["time", `${result.seconds.toFixed(1)} s`],
  ]);
  const verdict = result.isExactlyOnce
    ? "Every task ended exactly once."
    : "SOMETHING IS WRONG: see the figures above.";
  return `${rows}\n${verdict}`;
}

async function runDemoWorker(file: string): Promise<void> {
  const database = openDatabase(file);
  const handle = async () => {
    await sleep(TASK_MS);
  };
  const worker = createWorker({
    database,
    lanes: [{ queue: demoTasks, concurrency: 10, prefetchMax: 100, pollMs: 100, handle }],
    id: `pid-${process.pid}`,
    graceMs: 1_000,
  }).start();
  await worker.untilSignal();
  await database.close();
}

function startWorker(file: string): ChildProcess {
  const bin = process.argv[1]!;
  return spawn(process.execPath, [bin, "demo-worker", file], { stdio: ["ignore", "ignore", "inherit"] });
}

async function stopWorker(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  await exited(child);
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once("exit", resolve));
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 1_000_000) {
    throw new InvalidArgumentError("It must be a whole number from 1 to 1,000,000.");
  }
  return value;
}
