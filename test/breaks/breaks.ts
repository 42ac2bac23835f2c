import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A deliberate mistake: a piece of source, what is put in its place, and the tests that must notice. */
export interface Break {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
}

const SQLITE = ["test/queue/sqlite-memory.test.ts"];
const POSTGRES = ["test/queue/postgres.test.ts"];
const RACES = ["test/queue/races.test.ts"];
const WORKERS = ["test/queue/worker.test.ts"];
const PLANS = ["test/queue/plans.test.ts"];
const NEO4J = ["test/adapters/graph/neo4j.test.ts"];
const STATEMENTS = "src/queue/statements.ts";

export const BREAKS: readonly Break[] = [
  {
    name: "settle and renew without the token",
    file: STATEMENTS,
    find: "${batch.match} and ${token} = ${given} and",
    replace: "${batch.match} and ${token} is not null and",
    tests: SQLITE,
  },
  {
    name: "settle a row that is no longer running",
    file: STATEMENTS,
    find: "= ${given} and ${this.#dialect.check(this.#where.running)}`;",
    replace: "= ${given}`;",
    tests: SQLITE,
  },
  {
    name: "claim without raising the token",
    file: STATEMENTS,
    find: "        [columns.token]: `t.${quoted(columns.token)} + 1`,\n        [columns.lease]: this.#leaseUntil(3),",
    replace: "        [columns.lease]: this.#leaseUntil(3),",
    tests: SQLITE,
  },
  {
    name: "count attempts only at settlement, not when a worker dies",
    file: STATEMENTS,
    find: "      [columns.attempts]: this.#capped(spent),\n      [columns.token]",
    replace: "      [columns.token]",
    tests: SQLITE,
  },
  {
    name: "rescue whatever runs, whether its lease is over or not",
    file: STATEMENTS,
    find: "return `${this.#where.running} and t.${quoted(columns.lease)} < ${silentSince}`;",
    replace: "return `${this.#where.running} and ${silentSince} is not null`;",
    tests: SQLITE,
  },
  {
    name: "rescue without raising the token",
    file: STATEMENTS,
    find: '      [columns.token]: `t.${quoted(columns.token)} + 1`,\n      [columns.runAfter]: "null",\n      [columns.error]',
    replace: '      [columns.runAfter]: "null",\n      [columns.error]',
    tests: SQLITE,
  },
  {
    name: "a graceful release costs an attempt",
    file: STATEMENTS,
    find: '...(attempts.count === "claims" && { [columns.attempts]: `t.${quoted(columns.attempts)} - 1` }),',
    replace:
      '...(attempts.count === "failures" && { [columns.attempts]: `t.${quoted(columns.attempts)} + 1` }),',
    tests: SQLITE,
  },
  {
    name: "a manual retry keeps the spent attempts",
    file: STATEMENTS,
    find: 'attempts.again === "anew" ? { [columns.attempts]: "0" } :',
    replace: 'attempts.again === "anew" ? {} :',
    tests: SQLITE,
  },
  {
    name: "delayed rows can be claimed before they are due",
    file: "src/queue/predicates.ts",
    find: "ready: all(isWaiting, isDue, ...hasLeft,",
    replace: "ready: all(isWaiting, ...hasLeft,",
    tests: SQLITE,
  },
  {
    name: "exhausted rows can be claimed",
    file: "src/queue/predicates.ts",
    find: "ready: all(isWaiting, isDue, ...hasLeft,",
    replace: "ready: all(isWaiting, isDue,",
    tests: SQLITE,
  },
  {
    name: "gates are not looked at",
    file: "src/queue/predicates.ts",
    find: "...hasLeft, ...gates, ...turns)",
    replace: "...hasLeft, ...turns)",
    tests: SQLITE,
  },
  {
    name: "two claimers may take the same row",
    file: "src/database/dialect.ts",
    find: 'skipLocked: " for no key update skip locked"',
    replace: 'skipLocked: ""',
    tests: [...POSTGRES, ...RACES],
  },
  {
    name: "parents are derived without a lock",
    file: "src/queue/roll-up.ts",
    find: "if (!dialect.isSerial) await session.query(statements.lock, [dialect.keys(keys)]);",
    replace: "",
    tests: RACES,
  },
  {
    name: "parents are locked after they were derived",
    file: "src/queue/roll-up.ts",
    find: "    if (!dialect.isSerial) await session.query(statements.lock, [dialect.keys(keys)]);\n    const rows = await session.query(statements.derive, [dialect.keys(keys)]);",
    replace:
      "    const rows = await session.query(statements.derive, [dialect.keys(keys)]);\n    if (!dialect.isSerial) await session.query(statements.lock, [dialect.keys(keys)]);",
    tests: RACES,
  },
  {
    name: "a failed child hides that others are open",
    file: "src/queue/roll-up.ts",
    find: "    [waiting, statuses.pending],\n    [[statuses.failed], statuses.failed],",
    replace: "    [[statuses.failed], statuses.failed],\n    [waiting, statuses.pending],",
    tests: ["test/queue/model.test.ts"],
  },
  {
    name: "only the first level of parents follows",
    file: "src/queue/roll-up.ts",
    find: "const statements = levels[depth];",
    replace: "const statements = depth === 0 ? levels[depth] : undefined;",
    tests: SQLITE,
  },
  {
    name: "claims do not move parents",
    file: "src/queue/store.ts",
    find: "await this.#followers.moveParents(transaction, rows);",
    replace: "",
    tests: SQLITE,
  },
  {
    name: "a finished row keeps its group's turn",
    file: STATEMENTS,
    find: '...(group && { [group.turn]: keepsGoing ? `(${keepsGoing})` : "false" }),',
    replace: "",
    tests: SQLITE,
  },
  {
    name: "nobody passes the turn on",
    file: "src/queue/followers.ts",
    find: "if (!this.#turns || others.length === 0) return;",
    replace: "if (others.length >= 0) return;",
    tests: SQLITE,
  },
  {
    name: "effects are written although the lease is lost",
    file: "src/queue/settle.ts",
    find: "if (rows.length > 0) await also?.(transaction);",
    replace: "await also?.(transaction);",
    tests: SQLITE,
  },
  {
    name: "a COMMIT whose answer was lost is replayed",
    file: "src/database/postgres.ts",
    find: "return isQuarryError(error) && REPLAYABLE.has(sqlState(error.cause));",
    replace:
      'return isQuarryError(error, "commit_unknown") || (isQuarryError(error) && REPLAYABLE.has(sqlState(error.cause)));',
    tests: ["test/database/postgres.test.ts"],
  },
  {
    name: "the claim's index does not leave out delayed rows",
    file: "src/queue/indexes.ts",
    find: 'add("ready", [...taker, ...order], where.ready);',
    replace: 'add("ready", [...taker, ...order], where.waiting);',
    tests: PLANS,
  },
  {
    name: "the claim's index is in another order",
    file: "src/queue/indexes.ts",
    find: 'add("ready", [...taker, ...order], where.ready);',
    replace: 'add("ready", [...taker, ...order.toReversed()], where.ready);',
    tests: PLANS,
  },
  {
    name: "rows are taken that are reserved for others",
    file: "src/queue/statements.ts",
    find: "equals(`t.${quoted(reserved.column)}`, taker)",
    replace: "`t.${quoted(reserved.column)} <> ${literal(taker)}`",
    tests: ["test/queue/sqlite-memory.test.ts"],
  },
  {
    name: "the planner may choose",
    file: "src/database/postgres.ts",
    find: '  "set enable_seqscan = off",\n  "set enable_bitmapscan = off",\n  "set enable_sort = off",\n',
    replace: "",
    tests: PLANS,
  },
  {
    name: "nobody renews leases",
    file: "src/queue/worker.ts",
    find: "await Promise.allSettled(this.#lanes.map((lane) => lane.beat()));",
    replace: "",
    tests: WORKERS,
  },
  {
    name: "a handler stopped by shutdown spends an attempt",
    file: "src/queue/lane.ts",
    find: 'if (held.abortedBecause === "shutting_down") return { kind: "released" };',
    replace: "",
    tests: WORKERS,
  },
  {
    name: "a settlement repeated after a lost answer counts as lost",
    file: "src/queue/settle.ts",
    find: "if (options.isRepeat) await this.#findSettled(settlements, statuses);",
    replace: "",
    tests: SQLITE,
  },
  {
    name: "hierarchy: a document follows only from the pages that are not chunked yet",
    file: "src/documents/queues.ts",
    find: 'rollUp: [{ ...documentLevel("vector"), children: "table" }],',
    replace: 'rollUp: [documentLevel("vector")],',
    tests: ["test/documents/hierarchy.test.ts"],
  },
  {
    name: "hierarchy: redo forgets chunks that are being written",
    file: "src/documents/changes.ts",
    find: `      await run(\`update task_queue_page set \${columns} where document_id = $id\`);
      await dropChunks(parts, transaction, documentId);`,
    replace: `      await dropChunks(parts, transaction, documentId);
      await run(\`update task_queue_page set \${columns} where document_id = $id\`);`,
    tests: ["test/documents/races.test.ts"],
  },
  {
    name: "hierarchy: claims on SQLite read all that waits",
    file: STATEMENTS,
    find: 'from ${this.#tableBy("ready")} where',
    replace: "from ${this.#table} as t where",
    tests: ["test/documents/plans.test.ts"],
  },
  {
    name: "SQLite looks for what falls due among all that waits",
    file: STATEMENTS,
    find: 'as wait_ms from ${this.#tableBy("delayed")} where',
    replace: "as wait_ms from ${this.#table} as t where",
    tests: ["test/queue/product-plans.test.ts"],
  },
  {
    name: "a group whose row was counted gets no turn",
    file: "src/queue/settle.ts",
    find: "await this.#followers.passTurnsOf(entries.map(([key]) => key));",
    replace: "",
    tests: ["test/queue/sqlite-memory.test.ts"],
  },
  {
    name: "hierarchy: what was embedded is not remembered",
    file: "src/documents/step-cache.ts",
    find: "return new Map(rows.map((row) => [String(row.cache_key), row.output as Uint8Array]));",
    replace: "return new Map();",
    tests: ["test/documents/pipeline.test.ts"],
  },
  {
    name: "hierarchy: an outage spends tries",
    file: "src/outcomes.ts",
    find: "  if (isOutage(error)) return untilBack(error);\n",
    replace: "",
    tests: ["test/documents/pipeline.test.ts"],
  },
  {
    name: "hierarchy: the old version goes before the new one can be searched",
    file: "src/documents/removals.ts",
    find: 'if (successor.status !== "completed" && successor.is_of_use) {',
    replace: 'if (successor.status === "never") {',
    tests: ["test/documents/pipeline.test.ts"],
  },
  {
    name: "search: a tenant sees what the index says",
    file: "src/search/passages.ts",
    find: ".filter((row) => row.tenant === tenant)",
    replace: "",
    tests: ["test/search/search.test.ts"],
  },
  {
    name: "tasks: a task that is tried again gives its entity's turn away",
    file: STATEMENTS,
    find: '...(group && { [group.turn]: keepsGoing ? `(${keepsGoing})` : "false" }),',
    replace: '...(group && { [group.turn]: "false" }),',
    tests: ["test/agents/model.test.ts", "test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: a spent task that fails once more counts on",
    file: STATEMENTS,
    find: "? this.#dialect.least(spent, attemptsMax(this.#queue))",
    replace: "? spent",
    tests: ["test/agents/model.test.ts"],
  },
  {
    name: "tasks: a retry by hand starts the count anew",
    file: "src/agents/queue.ts",
    find: ', again: "once" }',
    replace: " }",
    tests: ["test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: one that was marked by hand and left is left for ever",
    file: "src/agents/queue.ts",
    find: "unheldMs: settings.taskStaleMs, ",
    replace: "",
    tests: ["test/agents/model.test.ts"],
  },
  {
    name: "tasks: what follows is enqueued apart from the completion",
    file: "src/agents/lane.ts",
    find: "if (next.length > 0) await tasks.within(transaction).enqueue(next);",
    replace: "if (next.length > 0) transaction.afterCommit(() => tasks.enqueue(next));",
    tests: ["test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: the payload is not looked at when a task runs",
    file: "src/agents/registry.ts",
    find: "if (parsed.success) return { run, payload: parsed.data };",
    replace: "if (parsed.success || task.payload) return { run, payload: task.payload };",
    tests: ["test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: entities are not locked",
    file: "src/agents/queue.ts",
    find: 'group: { columns: ["entity_type", "entity_id"], turn: "has_turn" },',
    replace: 'group: { columns: ["entity_type", "entity_id", "task_id"], turn: "has_turn" },',
    tests: ["test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: looking for turns that were not passed reads an entity's tasks for every other",
    file: "src/queue/turns.ts",
    find: 'dialect.isSerial ? columns("+c") : columns("c")',
    replace: 'columns("c")',
    tests: ["test/agents/plans.test.ts"],
  },
  {
    name: "tasks: passing a turn reads all tasks of its entity",
    file: "src/queue/turns.ts",
    find: 'const waiting = `${quoted(queue.table)} as w${indexedBy(queue, dialect, "behind")}`;',
    replace: "const waiting = `${quoted(queue.table)} as w`;",
    tests: ["test/agents/plans.test.ts"],
  },
  {
    name: "tasks: an old claim holds what was started by hand",
    file: "migrations/sqlite/0006_agents.sql",
    find: "set lease_token = lease_token + 1, lease_until = null",
    replace: "set lease_until = null",
    tests: ["test/agents/tasks.test.ts"],
  },
  {
    name: "tasks: whoever writes by hand may start a second task of an entity",
    file: "migrations/sqlite/0006_agents.sql",
    find: "create trigger task_queue_take_turn after update of status on task_queue\nwhen new.status = 'IN_PROGRESS'",
    replace:
      "create trigger task_queue_take_turn after update of status on task_queue\nwhen new.status = 'RUNNING'",
    tests: ["test/agents/constraints.test.ts"],
  },
  {
    name: "neo4j: what nobody mentions any more stays",
    file: "src/adapters/graph/neo4j-write.ts",
    find: "  if (lost.length > 0) await run(cypher.DROP_UNMENTIONED, { ids: lost });\n",
    replace: "",
    tests: NEO4J,
  },
  {
    name: "neo4j: other tenants' relations are shown",
    file: "src/adapters/graph/cypher.ts",
    find: 'WHERE ${isInside("r", narrowed)}${isOfDocuments("r", narrowed)}\nWITH startNode',
    replace: "WHERE $tenant IS NOT NULL\nWITH startNode",
    tests: NEO4J,
  },
  {
    name: "neo4j: a limit goes as what JavaScript calls a number",
    file: "src/adapters/graph/neo4j.ts",
    find: "const asked = { ...valuesOf(filter), id, limit: BigInt(RELATIONS_MAX) };",
    replace: "const asked = { ...valuesOf(filter), id, limit: RELATIONS_MAX };",
    tests: NEO4J,
  },
  {
    name: "neo4j: a server that is away costs an attempt",
    file: "src/adapters/graph/neo4j-link.ts",
    find: "    if (neo4j.isRetryableError(cause))\n",
    replace: "    if (cause === undefined)\n",
    tests: NEO4J,
  },
  {
    name: "models: what a model made up is believed",
    file: "src/adapters/entities/in-text.ts",
    find: "    if (!place) return [];\n    const source = nearest(kept, relation.source, place);",
    replace: "    const source = nearest(kept, relation.source, place ?? { start: 0, end: 1 });",
    tests: ["test/adapters/entities/llm.test.ts"],
  },
  {
    name: "models: one text that fails has all of its batch asked again",
    file: "src/documents/relate-chunks.ts",
    find: "keys.slice(index * textsMax, (index + 1) * textsMax),",
    replace: "(index === 0 ? keys : []),",
    tests: ["test/documents/tokens.test.ts"],
  },
  {
    name: "models: whoever waits for a turn is overtaken",
    file: "src/adapters/model-limits.ts",
    find: "      await unlessAborted(before, signal);\n",
    replace: "",
    tests: ["test/adapters/model-limits.test.ts"],
  },
  {
    name: "models: a loop is taken for the text of a page",
    file: "src/adapters/ocr/vision-answer.ts",
    find: "const markdown = withoutLoops(bare);",
    replace: "const markdown = bare;",
    tests: ["test/adapters/ocr/vision.test.ts"],
  },
  {
    name: "models: tokens are counted apart from the output they paid for",
    file: "src/documents/step-cache.ts",
    find: "            await countTokens(transaction, database.dialect, outputs);\n",
    replace: "",
    tests: ["test/documents/tokens.test.ts"],
  },
  {
    name: "SQLite: one that fails takes its group with it",
    file: "src/database/group-commit.ts",
    find: '      run("rollback to turn");\n',
    replace: '      run("rollback");\n',
    tests: ["test/database/group-commit.test.ts"],
  },
  {
    name: "SQLite: a writer is told before the commit",
    file: "src/database/group-commit.ts",
    find: "        await this.#join(next, failures);",
    replace: "        await this.#join(next, failures);\n        next.succeed();",
    tests: ["test/database/group-commit.test.ts"],
  },
];

/** The source with the mistake in it. One that finds nothing to break has to follow the source. */
export function brokenSource(root: string, { name, file, find, replace }: Break): string {
  const source = readFileSync(join(root, file), "utf8");
  if (source.split(find).length !== 2)
    throw new Error(`"${name}": ${file} does not contain the piece to break exactly once`);
  return source.replace(find, () => replace);
}
