import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Row } from "../../src/index.ts";
import { STALLED_MS } from "../support/crash/patience.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { FATAL_EVERY } from "./lock-worker.ts";
import { type Office, openOffice } from "./office.ts";

export interface LockRun {
  readonly processes: number;
  readonly tasks: number;
  readonly entities: number;
  /** SIGKILLs of processes that were at work. */
  readonly kills: number;
  readonly timeoutMs: number;
}

/** Tasks of one entity run one at a time and in their order, whatever happens to the processes that run them. */
export function testEntityLocks(run: LockRun): void {
  describe(`${run.processes} processes, ${run.tasks} tasks of ${run.entities} entities, ${run.kills} of them killed`, () => {
    for (const { name, open } of DATABASES) {
      it(`on ${name}: no two of an entity at once, order kept, nothing lost`, {
        timeout: run.timeoutMs,
      }, async (t) => {
        const test = await open();
        const scene = await openScene(test, run);
        try {
          t.diagnostic(JSON.stringify(await scene.drain()));
        } finally {
          await scene.close();
          await test.close();
        }
      });
    }
  });
}

async function openScene(test: TestDatabase, run: LockRun) {
  const office = await openOffice(test);
  await createAudit(test);
  const folder = join(test.folder, "locks");
  await mkdir(folder);
  const fleet = new Fleet({ url: test.url, folder }, run.processes);
  return {
    drain: async () => {
      const startedAt = performance.now();
      const ids = await driveWork(office, fleet, run);
      await fleet.stop();
      assert.deepEqual(fleet.complaints, []);
      const figures = await checkEvidence(office, ids);
      return { ...figures, kills: fleet.kills, durationMs: Math.round(performance.now() - startedAt) };
    },
    close: () => fleet.end(),
  };
}

/** Hands tasks in, mixed over the entities and in transactions of several, and kills as the work goes on. */
async function driveWork(office: Office, fleet: Fleet, run: LockRun): Promise<string[]> {
  const entities = await Promise.all(Array.from({ length: run.entities }, () => office.planner()));
  const ids: string[] = [];
  const steps = run.kills + 1;
  const step = Math.ceil(run.tasks / steps);
  for (let kill = 0; kill < steps; kill++) {
    while (ids.length < Math.min(run.tasks, (kill + 1) * step)) {
      const count = Math.min(1 + Math.floor(Math.random() * 20), run.tasks - ids.length);
      const batch = Array.from({ length: count }, (_, index) => ({
        entity_type: "planner" as const,
        entity_id: entities[Math.floor(Math.random() * entities.length)]!,
        function_name: "step",
        payload: { n: ids.length + index + 1 },
        max_retries: 50,
      }));
      ids.push(...(await office.tasks.enqueue(batch)));
    }
    if (kill < run.kills) await fleet.killOneAtWork(office);
  }
  let last = -1;
  for (let lookedAt = performance.now(); ; await sleep(50)) {
    const { COMPLETED, FAILED } = await office.tasks.counts();
    if (COMPLETED + FAILED === ids.length) return ids;
    if (COMPLETED + FAILED > last) lookedAt = performance.now();
    last = COMPLETED + FAILED;
    assert.ok(performance.now() - lookedAt < STALLED_MS, `stalled at ${last} of ${ids.length}`);
  }
}

/** Keeps so many processes at work, whatever happens to them. */
class Fleet {
  readonly complaints: string[] = [];
  kills = 0;
  readonly #options: object;
  #children: ChildProcess[] = [];
  #isClosing = false;

  constructor(options: object, size: number) {
    this.#options = options;
    for (let started = 0; started < size; started++) this.#start();
  }

  #start(): void {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const path = join(import.meta.dirname, "lock-worker.ts");
    const child = fork(path, [JSON.stringify(this.#options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env,
    });
    this.#children.push(child);
    let words = "";
    let isStarted = false;
    child.stderr!.on("data", (text) => {
      words = (words + text).slice(-2_000);
    });
    child.on("message", (message) => {
      if (message === "started") isStarted = true;
      else this.complaints.push(String(message));
    });
    child.on("close", (code, signal) => {
      this.#children = this.#children.filter((one) => one !== child);
      // One that is told to stop before it listens just ends.
      const isAsked = signal === "SIGKILL" || (signal === "SIGTERM" && this.#isClosing && !isStarted);
      if (code !== 0 && !isAsked)
        this.complaints.push(`a process ended by itself (${signal ?? code}): ${words}`);
      if (!this.#isClosing) this.#start();
    });
  }

  /** A process that holds tasks, and leaves them behind. */
  async killOneAtWork(office: Office): Promise<void> {
    for (const giveUpAt = performance.now() + STALLED_MS; performance.now() < giveUpAt; await sleep(5)) {
      const victim = this.#pick(await heldBy(office));
      if (!victim) continue;
      const closed = once(victim, "close");
      victim.kill("SIGKILL");
      await closed;
      if (!(await heldBy(office)).has(victim.pid!)) continue;
      this.kills++;
      return;
    }
    assert.fail(`nobody is at work: ${this.complaints.join("\n")}`);
  }

  #pick(holders: ReadonlySet<number>): ChildProcess | undefined {
    const candidates = this.#children.filter(({ pid }) => holders.has(pid!));
    return candidates[Math.floor(Math.random() * candidates.length)];
  }

  async stop(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#children.map((child) => this.#end(child, "SIGTERM")));
  }

  async end(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#children.map((child) => this.#end(child, "SIGKILL")));
  }

  async #end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    const closed = once(child, "close");
    child.kill(signal);
    await closed;
  }
}

/** Process ids of those that hold tasks. */
async function heldBy(office: Office): Promise<Set<number>> {
  const rows = await office.query("select distinct claimed_by from task_queue where status = 'IN_PROGRESS'");
  return new Set(rows.map((row) => Number(/-(\d+)-[0-9a-f]+$/.exec(String(row.claimed_by))?.[1])));
}

/** What happened to every row, written down by the database itself. */
async function createAudit({ database }: TestDatabase): Promise<void> {
  const columns = "task_id text, entity_id text, was text, became text, retry_count integer";
  const values = "new.task_id, new.entity_id, old.status, new.status, new.retry_count";
  const insert = `insert into audit (task_id, entity_id, was, became, retry_count) values (${values})`;
  await database.query(
    "create table effects (task_id text not null, entity_id text not null, n integer not null)",
  );
  if (database.dialect.name === "sqlite") {
    await database.query(`create table audit (seq integer primary key autoincrement, ${columns})`);
    await database.query(`create trigger audited after update of status on task_queue begin ${insert}; end`);
    return;
  }
  await database.query(`create table audit (seq bigserial primary key, ${columns})`);
  await database.query(
    `create function audit() returns trigger language plpgsql as $$ begin ${insert}; return null; end $$`,
  );
  await database.query(
    "create trigger audited after update of status on task_queue for each row execute function audit()",
  );
}

async function checkEvidence(office: Office, ids: readonly string[]) {
  const tasks = await office.query("select * from task_queue order by created_at, task_id");
  const audit = await office.query("select * from audit order by seq");
  const effects = await office.query("select * from effects");
  assert.deepEqual(tasks.map((row) => row.task_id).toSorted(), [...ids].toSorted(), "a task was lost");
  const problems = [
    ...problemsOfOrder(tasks, audit),
    ...problemsOfTasks(tasks, audit),
    ...problemsOfEffects(tasks, effects),
  ];
  assert.equal(problems.length, 0, problems.slice(0, 10).join("\n"));
  const [turns] = await office.query("select count(*) as total from task_queue where has_turn");
  assert.equal(Number(turns!.total), 0, "a finished task has its entity's turn");
  return {
    tasks: tasks.length,
    claims: audit.filter(isClaim).length,
    failures: audit.filter(({ was, became }) => was === "IN_PROGRESS" && became !== "COMPLETED").length,
    failed: tasks.filter(({ status }) => status === "FAILED").length,
  };
}

const isClaim = ({ became }: Row) => became === "IN_PROGRESS";

/** An entity's tasks begin in their order, and none before the one before it is over. */
function problemsOfOrder(tasks: readonly Row[], audit: readonly Row[]): string[] {
  const problems: string[] = [];
  const entries = Map.groupBy(audit, (entry) => entry.entity_id);
  for (const [entity, rows] of Map.groupBy(tasks, (task) => task.entity_id)) {
    const order = rows.map((row) => row.task_id);
    let next = 0;
    let running: unknown;
    for (const { task_id: id, was, became, seq } of entries.get(entity) ?? []) {
      if (became === "IN_PROGRESS") {
        if (running !== undefined) problems.push(`${entity}: ${id} began while ${running} ran (${seq})`);
        if (id !== order[next]) problems.push(`${entity}: ${id} began, ${order[next]} was next (${seq})`);
        running = id;
      } else {
        if (running !== id) problems.push(`${entity}: ${id} went from ${was} to ${became} (${seq})`);
        running = undefined;
        if (became !== "PENDING") next++;
      }
    }
  }
  return problems;
}

/** Each is over, for the reason it should be, and every try was counted. */
function problemsOfTasks(tasks: readonly Row[], audit: readonly Row[]): string[] {
  const claims = Map.groupBy(audit.filter(isClaim), (entry) => entry.task_id);
  return tasks.flatMap(({ task_id: id, status, payload, retry_count: count, error_message: error }) => {
    const { n } = typeof payload === "string" ? JSON.parse(payload) : (payload as { n: number });
    const isFatal = n % FATAL_EVERY === 0;
    const tries = Number(count) + (status === "COMPLETED" ? 1 : 0);
    const claimed = claims.get(id)?.length ?? 0;
    return [
      ...(status === (isFatal ? "FAILED" : "COMPLETED") ? [] : [`task ${n} is ${status}: ${error}`]),
      ...(isFatal && error !== "never" ? [`task ${n} failed with ${error}`] : []),
      ...(claimed === tries ? [] : [`task ${n} was claimed ${claimed} times and has ${tries} tries`]),
    ];
  });
}

/** What a task leaves behind is there once if it completed, and never if it failed. */
function problemsOfEffects(tasks: readonly Row[], effects: readonly Row[]): string[] {
  const left = Map.groupBy(effects, (effect) => effect.task_id);
  return tasks.flatMap(({ task_id: id, status }) => {
    const count = left.get(id)?.length ?? 0;
    return count === (status === "COMPLETED" ? 1 : 0)
      ? []
      : [`task ${id} is ${status} with ${count} effects`];
  });
}
