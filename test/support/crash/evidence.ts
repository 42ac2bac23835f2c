import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Database, Row } from "../../../src/index.ts";
import { POLL_MS, steadily } from "./patience.ts";
import { writesEffect, writesResult } from "./worker.ts";

interface Entry {
  readonly seq: number;
  readonly kind:
    | "claimed"
    | "settled"
    | "rescued"
    | "returned"
    | "released"
    | "reopened"
    | "robbed"
    | "changed"
    | "stale";
  readonly task_id: number;
  readonly token: number;
  readonly holder: string | null;
  readonly writer: string | null;
  readonly at: string;
}

interface TaskRow extends Row {
  readonly id: number;
  readonly n: number;
  readonly status: string;
  readonly token: number;
  readonly attempts: number;
  readonly lease_until: string | null;
  readonly result_n: number | null;
  readonly result_token: number | null;
}

interface Effect {
  readonly task_id: number;
  readonly token: number;
  readonly writer: string;
}

interface Evidence {
  readonly rows: readonly TaskRow[];
  readonly audit: readonly Entry[];
  readonly effects: readonly Effect[];
  readonly enqueued: number;
}

export async function readAll(database: Database): Promise<Omit<Evidence, "enqueued">> {
  const read = (sql: string) => steadily(() => database.query(sql));
  return {
    rows: (await read("select * from tasks order by n")) as unknown as TaskRow[],
    audit: (await read("select * from audit order by seq")) as unknown as Entry[],
    effects: (await read("select * from effects")) as unknown as Effect[],
  };
}

/** One text for each broken promise, with everything that happened to the row. */
export function findProblems({ rows, audit, effects, enqueued }: Evidence): string[] {
  const problems: string[] = [];
  const trails = Map.groupBy(audit, (entry) => entry.task_id);
  const effectsOf = Map.groupBy(effects, (effect) => effect.task_id);
  const numbers = new Set(rows.map((row) => row.n));
  for (let n = 1; n <= enqueued; n++) if (!numbers.has(n)) problems.push(`task n=${n} is gone`);
  if (rows.length !== enqueued) problems.push(`${enqueued} tasks were enqueued, ${rows.length} are there`);
  for (const row of rows) {
    const trail = trails.get(row.id) ?? [];
    const found = [
      ...problemsOfTrail(trail),
      ...problemsOfRow(row, trail),
      ...problemsOfEffects(row, effectsOf.get(row.id) ?? []),
    ];
    for (const problem of found)
      problems.push(`task ${row.id} (n=${row.n}): ${problem}\n${trailOf(row.id, audit)}`);
  }
  return problems;
}

function problemsOfTrail(trail: readonly Entry[]): string[] {
  const problems: string[] = [];
  let held: Entry | undefined;
  let newest = 0;
  for (const entry of trail) {
    const { kind, token, seq } = entry;
    switch (kind) {
      case "claimed":
        if (held) problems.push(`${seq}: claimed while token ${held.token} of ${held.holder} still held it`);
        if (token <= newest) problems.push(`${seq}: token ${token} after ${newest}`);
        held = entry;
        break;
      case "settled":
        if (!held) problems.push(`${seq}: settled while nobody held it`);
        else if (token !== held.token) problems.push(`${seq}: settled as ${token}, held as ${held.token}`);
        held = undefined;
        break;
      case "rescued":
      case "returned":
        if (!held) problems.push(`${seq}: ${kind} while nobody held it`);
        held = undefined;
        break;
      case "released":
        problems.push(`${seq}: given back although no worker was asked to stop`);
        held = undefined;
        break;
      case "robbed":
        problems.push(`${seq}: taken from ${held?.holder} before its lease was over`);
        held = undefined;
        break;
      case "stale":
        problems.push(`${seq}: ${entry.writer} wrote to a row that ${entry.holder} held`);
        break;
      case "reopened":
      case "changed":
        problems.push(`${seq}: ${kind} without being asked for`);
        break;
      default:
        kind satisfies never;
    }
    newest = Math.max(newest, token);
  }
  return problems;
}

function problemsOfRow(row: TaskRow, trail: readonly Entry[]): string[] {
  const problems: string[] = [];
  const settled = trail.filter((entry) => entry.kind === "settled").length;
  const claims = trail.filter((entry) => entry.kind === "claimed").length;
  if (row.status !== "completed") problems.push(`is ${row.status}`);
  if (row.lease_until !== null) problems.push(`still has a lease until ${row.lease_until}`);
  if (settled !== 1) problems.push(`was settled ${settled} times`);
  if (row.attempts !== claims)
    problems.push(`counts ${row.attempts} attempts and was claimed ${claims} times`);
  const expected = writesResult(row.n) ? [2 * row.n, row.token] : [null, null];
  const result = [row.result_n, row.result_token];
  if (result[0] !== expected[0] || result[1] !== expected[1])
    problems.push(`has result ${result}, not ${expected}`);
  return problems;
}

function problemsOfEffects(row: TaskRow, effects: readonly Effect[]): string[] {
  const expected = writesEffect(row.n) ? 1 : 0;
  if (effects.length !== expected) return [`has ${effects.length} effects, not ${expected}`];
  return effects
    .filter((effect) => effect.token !== row.token)
    .map((effect) => `its effect was written with token ${effect.token} by ${effect.writer}`);
}

export function trailOf(id: unknown, audit: readonly Entry[]): string {
  return audit
    .filter((entry) => entry.task_id === id)
    .map(
      ({ seq, kind, token, holder, writer, at }) =>
        `  ${seq} ${at} ${kind} token ${token} holder ${holder} writer ${writer}`,
    )
    .join("\n");
}

export async function checkDatabase(database: Database): Promise<void> {
  if (database.dialect.name !== "sqlite") return;
  assert.deepEqual(
    (await database.query("pragma integrity_check")).map((row) => ({ ...row })),
    [{ integrity_check: "ok" }],
  );
}

/** However their processes ended, no connection of theirs is left. */
export async function checkConnections(url: string): Promise<void> {
  const sql = `
    select pid, application_name, state, query from pg_stat_activity
    where application_name in ('quarry', 'quarry listen') and datname = current_database()`;
  let left: Row[] = [];
  for (let poll = 0; poll < 250; poll++) {
    left = await asAdmin(url, sql);
    if (left.length === 0) return;
    await sleep(POLL_MS);
  }
  assert.deepEqual(left, [], "connections were left open");
}

export async function asAdmin(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, application_name: "crash harness" });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
