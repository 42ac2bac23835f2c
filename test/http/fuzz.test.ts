import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { z } from "zod";
import { defineFunction } from "../../src/index.ts";
import { freshPostgres } from "../support/postgres.ts";
import { isNaming, type Schema, SEEN, strange, valuesOf } from "./from-schema.ts";
import { type Serving, serveForTest } from "./serving.ts";

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 8_000);
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_116);
const AT_ONCE = 4;
const KEY = "fuzz-key-0123456789";
const SETTINGS = { apiKey: KEY, rateLimit: 10_000_000, bodyMbMax: 1 };
const LIMITS = { timeout: 240_000 };
const SEEN_MAX = 500;
const DOCUMENTS = 40;

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}

interface Planned {
  readonly operation: Operation;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** A name that an answer gave, and where. */
interface Seen {
  readonly tag: string;
  readonly field: string;
  readonly value: string;
}

interface Tally {
  readonly statuses: Map<number, number>;
  /** Operations that were done at least once. */
  readonly done: Set<Operation>;
}

interface Answered {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

test(`${REQUESTS} requests made of the documentation get answers that it allows`, LIMITS, async (context) => {
  const serving = await serveForTest({ settings: await settings() });
  try {
    const { text, never } = await fuzz(serving, REQUESTS);
    context.diagnostic(text);
    // What is behind these was not tried at all.
    if (REQUESTS >= 8_000) assert.deepEqual(never, [], "operations that were never asked rightly");
  } finally {
    await serving.close();
  }
});

/** It takes less than SQLite does: it has types, and refuses what does not fit them. */
test("so do some on PostgreSQL", LIMITS, async (context) => {
  const { url, drop } = await freshPostgres();
  const serving = await serveForTest({ settings: { ...(await settings()), databaseUrl: url } });
  try {
    context.diagnostic((await fuzz(serving, Math.ceil(REQUESTS / 5))).text);
  } finally {
    await serving.close();
    await drop();
  }
});

/** With a RAG, whose folder goes with the test's own. */
async function settings() {
  const sources = await mkdtemp(join(tmpdir(), "quarry-fuzz-"));
  after(() => rm(sources, { recursive: true, force: true }));
  return { ...SETTINGS, rags: { fuzz_rag: { sources } } };
}

/** What became of the requests, and which operations were never done. */
async function fuzz(serving: Serving, numRuns: number): Promise<{ text: string; never: string[] }> {
  for (let number = 1; number <= DOCUMENTS; number += 1) {
    const path = `${serving.folder}/${number}.txt`;
    await writeFile(path, `The text of document ${number}.`);
    await serving.quarry.documents.add({ path });
  }
  await failSomeItems(serving);
  await failSomeTasks(serving);
  await submitSomeFiles(serving);
  const described = await serving.ask("/openapi.json", { headers: { "x-api-key": KEY } });
  const document = (await described.json()) as Document;
  const operations = operationsOf(document);
  const plans = fc.sample(planned(operations, resolverOf(document)), { seed: SEED, numRuns });
  const { statuses, done } = await sendAll(serving, plans, new AnswerChecks(document));
  const never = operations.filter((operation) => !done.has(operation));
  const counts = [...statuses].sort().map(([status, count]) => `${status}: ${count}`);
  return {
    text: `${operations.length} operations; ${counts.join(", ")}`,
    never: never.map(({ method, path }) => `${method} ${path}`),
  };
}

/** There is something to be tried again. */
async function failSomeItems({ quarry }: Serving): Promise<void> {
  const items = await quarry.queue.enqueueMany(
    Array.from({ length: DOCUMENTS }, (_, number) => ({
      item_type: "file",
      op: "ingest",
      payload: { file_path: `/nowhere/${number}.txt` },
    })),
  );
  const crew = await quarry.work({ lanes: ["items"] });
  await quarry.queue.finished(items.map((item) => item.queue_id));
  await crew.stop();
}

/** And something that was tried often enough, with a function that takes anything. */
async function failSomeTasks({ quarry }: Serving): Promise<void> {
  const { tasks } = quarry;
  const run = async () => {
    throw new Error("never");
  };
  tasks.register(defineFunction({ name: "never", entityType: "planner", payload: z.looseObject({}), run }));
  const entity = await tasks.createEntity("planner");
  const task = { entity_type: "planner", entity_id: entity, function_name: "never", max_retries: 0 } as const;
  await tasks.enqueue(Array.from({ length: DOCUMENTS }, () => task));
  const crew = await quarry.work({ lanes: ["tasks"] });
  while ((await tasks.counts()).FAILED < DOCUMENTS) await new Promise((resolve) => setTimeout(resolve, 20));
  await crew.stop();
}

/** Files that are in line and stay there. */
async function submitSomeFiles({ quarry: { rag } }: Serving): Promise<void> {
  const { incoming } = rag.rags.get("fuzz_rag")!.folders;
  await mkdir(incoming, { recursive: true });
  for (let number = 1; number <= DOCUMENTS; number += 1) {
    const path = join(incoming, `${number}.txt`);
    await writeFile(path, `The text of file ${number}.`);
    await rag.submit({ rag_id: "fuzz_rag", source_path: path });
  }
}

/** All but streams, which do not end. */
function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        path,
        method: method.toUpperCase(),
      })),
    )
    .filter(({ responses }) => responses["200"]?.content?.["text/event-stream"] === undefined);
}

type Resolve = (ref: string) => Schema;

function resolverOf(document: Document): Resolve {
  return (ref) =>
    ref
      .slice(2)
      .split("/")
      .reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], document) as Schema;
}

/** Mostly what the schema allows, for otherwise nothing behind it is ever reached. */
function mostly(schema: Schema, resolve: Resolve, name: string): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 9, arbitrary: valuesOf(schema, resolve, name) },
    { weight: 1, arbitrary: strange },
  );
}

function planned(operations: readonly Operation[], resolve: Resolve): fc.Arbitrary<Planned> {
  return fc.constantFrom(...operations).chain((operation) => {
    const parametersIn = (place: Parameter["in"]) =>
      (operation.parameters ?? []).filter((each) => each.in === place);
    const record = (place: Parameter["in"]) => {
      const all = parametersIn(place);
      const needed = all.filter(({ required }) => required);
      const of = (parameters: readonly Parameter[]) =>
        Object.fromEntries(parameters.map(({ name, schema }) => [name, mostly(schema, resolve, name)]));
      // Lists that are always filtered by chance are always empty.
      return fc.oneof(
        fc.record(of(all), { requiredKeys: needed.map(({ name }) => name) }),
        fc.record(of(needed)),
      );
    };
    const unknown = fc.oneof(
      { weight: 19, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.dictionary(fc.string({ minLength: 1 }), strange, { maxKeys: 2 }) },
    );
    const schema = operation.requestBody?.content["application/json"]?.schema;
    const key = fc.oneof(
      { weight: 29, arbitrary: fc.constant({ "x-api-key": KEY }) },
      { weight: 1, arbitrary: fc.constant({}) },
    );
    return fc
      .record({
        params: record("path"),
        query: record("query"),
        headers: record("header"),
        unknown,
        key,
        body: bodies(schema, resolve),
      })
      .map(({ params, query, headers, unknown: more, key: presented, body }) => ({
        operation,
        path: operation.path.replaceAll(/\{(\w+)\}/g, (_whole, name) => escaped(params[name]) || "-"),
        query: queryOf({ ...query, ...more }),
        headers: { ...headerTexts(headers), ...presented, ...body.headers },
        body: body.text,
      }));
  });
}

function bodies(
  schema: Schema | undefined,
  resolve: Resolve,
): fc.Arbitrary<{ text: string | undefined; headers: Record<string, string> }> {
  const none = fc.constant({ text: undefined, headers: {} });
  const json = (value: unknown) => ({
    text: JSON.stringify(value) ?? "",
    headers: { "content-type": "application/json" },
  });
  if (!schema) return fc.oneof({ weight: 30, arbitrary: none }, { weight: 1, arbitrary: strange.map(json) });
  const spoilt = fc
    .tuple(valuesOf(schema, resolve), fc.string({ minLength: 1, maxLength: 10 }), strange)
    .map(([value, name, more]) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? { ...value, [name]: more }
        : [value, more],
    );
  return fc.oneof(
    { weight: 12, arbitrary: valuesOf(schema, resolve).map(json) },
    { weight: 2, arbitrary: spoilt.map(json) },
    { weight: 2, arbitrary: strange.map(json) },
    { weight: 1, arbitrary: fc.string({ unit: "binary" }).map((text) => ({ ...json(""), text })) },
    { weight: 1, arbitrary: fc.constant({ text: "{}", headers: { "content-type": "text/plain" } }) },
    { weight: 1, arbitrary: none },
  );
}

function queryOf(values: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(values).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => `${escaped(name)}=${escaped(each)}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function escaped(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  // What is escaped already stays: bad escapes are to be tried too.
  return /^%\w\w$/.test(text) ? text : encodeURIComponent(text.toWellFormed());
}

function headerTexts(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(values).map(([name, value]) => [
    name,
    String(value).replaceAll(/[^\x20-\x7e]/g, "?"),
  ]);
  return Object.fromEntries(texts);
}

async function sendAll(serving: Serving, plans: readonly Planned[], checks: AnswerChecks): Promise<Tally> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const seen: Seen[] = [];
  const tally: Tally = { statuses: new Map(), done: new Set() };
  let next = 0;
  const sendOnes = async () => {
    while (next < plans.length) {
      const index = next;
      next += 1;
      const plan = withSeen(plans[index]!, seen);
      const answer = await send(serving.port, plan, agent);
      tally.statuses.set(answer.status, (tally.statuses.get(answer.status) ?? 0) + 1);
      if (answer.status < 300) tally.done.add(plan.operation);
      const problem = checks.problemOf(plan.operation, answer);
      if (problem) assert.fail(`FUZZ_SEED=${SEED}, request ${index}: ${problem}\n${shown(plan, answer)}`);
      // The documentation names everything, and nothing that is there.
      if (answer.status < 300 && answer.type === "application/json" && plan.path !== "/openapi.json")
        remember(JSON.parse(answer.body), seen, { tag: plan.operation.tags[0]!, field: "" });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendOnes));
  agent.destroy();
  return tally;
}

/** Names of earlier answers in the place of those that are only hinted at. */
function withSeen(plan: Planned, seen: readonly Seen[]): Planned {
  const named = (number: string, field: string) => {
    const known = likely(seen, field, plan.operation.tags[0]!);
    return known[Number(number) % Math.max(1, known.length)]?.value ?? "nothing";
  };
  const inAddress = (text: string) =>
    text.replaceAll(/(?<=[/=])seen%3A(\d+)%3A(\w+)/g, (_whole, number, field) =>
      encodeURIComponent(named(number, field)),
    );
  const inJson = (_key: string, value: unknown) => {
    const [, number, field] = typeof value === "string" ? (SEEN.exec(value) ?? []) : [];
    return number === undefined ? value : named(number, field!);
  };
  const isJson = plan.body?.includes('"seen:') ?? false;
  return {
    ...plan,
    path: inAddress(plan.path),
    query: inAddress(plan.query),
    body: isJson ? JSON.stringify(JSON.parse(plan.body!, inJson)) : plan.body,
  };
}

/** `id` of a document comes from answers about documents, `worker_id` from those about workers. */
function likely(seen: readonly Seen[], field: string, tag: string): readonly Seen[] {
  const stem = field.replace(/_?id$/i, "").toLowerCase();
  const choices = [
    seen.filter((each) => each.tag === tag && each.field === field),
    seen.filter((each) => stem !== "" && each.tag.toLowerCase().startsWith(stem) && each.field === "id"),
    seen.filter((each) => each.field === field),
  ];
  return choices.find(({ length }) => length > 0) ?? seen;
}

function remember(value: unknown, seen: Seen[], place: { tag: string; field: string }): void {
  if (typeof value === "string" && isNaming(place.field) && value.length > 0 && value.length < 100) {
    if (seen.length >= SEEN_MAX) seen.shift();
    // Items and tasks call theirs by the name of its column.
    const isId = ["queue_id", "task_id", "job_id"].includes(place.field);
    seen.push({ ...place, field: isId ? "id" : place.field, value });
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value).slice(0, 50))
      remember(item, seen, Array.isArray(value) ? place : { ...place, field: key });
  }
}

function send(
  port: number,
  { operation, path, query, headers, body }: Planned,
  agent: Agent,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const sent = request(
      {
        port,
        host: "127.0.0.1",
        method: operation.method,
        path: path + query,
        headers: { ...headers, ...length },
        agent,
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (data) => {
          text += data;
        });
        const type = (answer.headers["content-type"] ?? "").split(";")[0]!;
        answer.on("end", () => resolve({ status: answer.statusCode!, type, body: text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Each answer against what is declared for its operation, status and type. */
class AnswerChecks {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #compiled = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    addFormats.default(this.#ajv);
    this.#ajv.addSchema({ ...document, $id: "http://quarry.test/openapi.json" });
  }

  problemOf({ method, path, responses }: Operation, { status, type, body }: Answered): string | undefined {
    if (status >= 500 && status !== 503) return `the server failed with ${status}`;
    const declared = responses[String(status)];
    if (!declared) return `${status} is not declared`;
    if (!declared.content) return body === "" ? undefined : "a body where none is declared";
    if (!declared.content[type]) return `${status} as ${type || "nothing"} is not declared`;
    if (!type.endsWith("json")) return undefined;
    const pointer = [
      "paths",
      path,
      method.toLowerCase(),
      "responses",
      String(status),
      "content",
      type,
      "schema",
    ]
      .map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
      .join("/");
    const validate =
      this.#compiled.get(pointer) ??
      this.#ajv.compile({ $ref: `http://quarry.test/openapi.json#/${pointer}` });
    this.#compiled.set(pointer, validate);
    if (validate(JSON.parse(body))) return undefined;
    return `the answer is not as declared: ${this.#ajv.errorsText(validate.errors?.slice(0, 5))}`;
  }
}

function shown({ operation, path, query, body }: Planned, answer: Answered): string {
  return `${operation.method} ${path}${query}\n${body ?? ""}\n→ ${answer.status} ${answer.body}`.slice(
    0,
    4_000,
  );
}
