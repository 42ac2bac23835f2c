import { setTimeout as sleep } from "node:timers/promises";
import {
  createLog,
  createWorker,
  type Database,
  defineLane,
  defineQueue,
  done,
  fixedDelays,
  isQuarryError,
  type Outcome,
  openDatabase,
  openQueue,
  retry,
  type Task,
  type Telemetry,
} from "../../../src/index.ts";

export interface CrashTask {
  n: number;
  /** How long its handler takes. */
  sleep_ms: number;
}

export const LEASE_MS = 1_000;

export const tasks = defineQueue<CrashTask>({
  name: "tasks",
  table: "tasks",
  key: { column: "id", type: "integer" },
  columns: {
    status: "status",
    token: "token",
    lease: "lease_until",
    runAfter: "run_after",
    attempts: "attempts",
    error: "error",
    worker: "worker_id",
    startedAt: "started_at",
    finishedAt: "finished_at",
  },
  attempts: { count: "claims", max: "attempts_max" },
  lease: { ms: LEASE_MS },
  order: ["n"],
  retry: fixedDelays(0),
  reads: ["n", "sleep_ms"],
  results: ["result_n", "result_token"],
  dedupe: ["n"],
});

/** What a row does is decided by its number, so that whoever checks it afterwards knows what to expect. */
export const writesResult = (n: number): boolean => n % 4 === 1 || n % 4 === 3;
export const writesEffect = (n: number): boolean => n % 4 === 2 || n % 4 === 3;
const failsAtFirst = (n: number): boolean => n % 10 === 0;

export interface CrashWorkerOptions {
  readonly url: string;
  /** Never the same twice; also the worker's id in the rows it holds. */
  readonly label: string;
  readonly concurrency: number;
  readonly graceMs?: number;
  /** Handlers go on when they are aborted, as a process does that was stopped and wakes up too late. */
  readonly isDeaf?: boolean;
}

/** What a worker process tells the one that started it. */
export type CrashWorkerReport =
  | { readonly kind: "started" }
  | { readonly kind: "began"; readonly n: number }
  /** An outcome that the database did not take, because the lease was gone. */
  | { readonly kind: "refused" };

async function run(options: CrashWorkerOptions): Promise<void> {
  // Whoever started this process is gone: nobody is left to stop it.
  process.on("disconnect", () => process.exit(1));
  process.channel?.unref();
  const report = (message: CrashWorkerReport) =>
    process.connected && process.send?.(message, () => undefined);

  const log = createLog({ level: "warn" });
  const database = openDatabase(urlOfWriter(options), {
    poolMax: 4,
    onError: (error) => log.warn({ error: String(error) }, "the connection had a problem"),
  });
  await denounceStaleWrites(database, options.label);
  const telemetry = countingRefusals(() => report({ kind: "refused" }));
  const store = openQueue(database, tasks);
  const lane = defineLane({
    queue: tasks,
    concurrency: options.concurrency,
    handle: async (task: Task<CrashTask>) => {
      report({ kind: "began", n: task.row.n });
      await sleep(task.row.sleep_ms, undefined, options.isDeaf ? {} : { signal: task.signal });
      const outcome = outcomeOf(task, options.label);
      // The lane would not even try: here it is the database that has to say no.
      if (isQuarryError(task.signal.reason, "lease_lost")) {
        const [verdict] = await store.settle([{ claim: task, outcome }]);
        if (verdict === "lost") report({ kind: "refused" });
      }
      return outcome;
    },
  });
  const worker = createWorker({
    database,
    lanes: [lane],
    id: options.label,
    graceMs: options.graceMs ?? 10_000,
    log,
    telemetry,
  }).start();
  const stopped = worker.untilSignal();
  report({ kind: "started" });
  await stopped;
  // The process ends by itself: whatever the engine left behind would keep it running.
  await database.close();
}

function outcomeOf(task: Task<CrashTask>, label: string): Outcome {
  const { n } = task.row;
  if (failsAtFirst(n) && task.attempt === 1) return retry("on purpose", n % 20 === 0 ? 0 : 30);
  const outcome = done(writesResult(n) ? { result_n: 2 * n, result_token: task.token } : undefined);
  if (outcome.kind !== "done" || !writesEffect(n)) return outcome;
  const values = `${Number(task.key)}, ${task.token}, '${label}'`;
  return {
    ...outcome,
    also: async (transaction) => {
      await transaction.query(`insert into effects (task_id, token, writer) values (${values})`);
    },
  };
}

/** PostgreSQL's trigger asks the connection who is writing. */
function urlOfWriter({ url, label }: CrashWorkerOptions): string {
  if (!url.startsWith("postgres")) return url;
  const named = new URL(url);
  named.searchParams.set("options", `-c quarry.writer=${label}`);
  return named.href;
}

/** SQLite cannot ask, so each connection brings a trigger that knows its own name. */
async function denounceStaleWrites(database: Database, label: string): Promise<void> {
  if (database.dialect.name !== "sqlite") return;
  await database.query(`
    create temp trigger denounce_stale_writes after update on main.tasks
    when old.status = 'processing' and old.worker_id is not '${label}'
    begin
      insert into audit (kind, task_id, token, holder, writer)
      values ('stale', old.id, old.token, old.worker_id, '${label}');
    end`);
}

/** The engine's own word on every settlement: "lost" is one that the database did not take. */
function countingRefusals(onRefused: () => void): Telemetry {
  return {
    span: (_name, _attributes, work) => work(),
    count: (name, _value, { verdict }) => {
      if (name === "quarry.settled" && verdict === "lost") onRefused();
    },
  };
}

if (import.meta.main) await run(JSON.parse(process.argv[2]!) as CrashWorkerOptions);
