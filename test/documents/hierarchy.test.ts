import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { cancelWork, redoPhase, retryFailed } from "../../src/documents/changes.ts";
import { documentQueues, PHASES, type Phase, type TaskStatus } from "../../src/documents/queues.ts";
import { removeDocuments } from "../../src/documents/remove.ts";
import {
  type Claim,
  type Database,
  done,
  failed,
  type Outcome,
  prepareQueue,
  type Row,
  released,
  retry,
} from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import {
  chunkOutcome,
  growTree,
  openStores,
  plantDocument,
  type Stores,
  splitOutcome,
  type TreeShape,
} from "./tree.ts";

const queues = documentQueues({ staleMs: 120_000 });
const LANES = ["split", "pageOcr", "pageChunk", "pageGraphrag", "chunkVector", "chunkGraphrag"] as const;
type LaneName = (typeof LANES)[number];

type Command =
  | { do: "plant"; shape: TreeShape }
  | { do: "work"; lane: LaneName; limit: number; outcomes: ("done" | "retry" | "failed" | "released")[] }
  | { do: "abandon"; lane: LaneName }
  | { do: "rescue" }
  | { do: "retry" | "cancel" | "delete"; pick: number }
  | { do: "redo"; pick: number; phase: Phase };

const outcome = fc.constantFrom("done", "done", "done", "done", "retry", "failed", "released");
const lane = fc.constantFrom(...LANES);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant("plant" as const), shape: shapes() }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("work" as const),
      lane,
      limit: fc.integer({ min: 1, max: 6 }),
      outcomes: fc.array(outcome, { minLength: 6, maxLength: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abandon" as const), lane }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("rescue" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("retry", "cancel", "delete"), pick: fc.nat({ max: 5 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("redo" as const),
      pick: fc.nat({ max: 5 }),
      phase: fc.constantFrom(...PHASES),
    }),
  },
);

function shapes(): fc.Arbitrary<TreeShape> {
  return fc.record({ pages: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 4 }) });
}

/** The four rules, in their order. */
function ruleOf(children: readonly TaskStatus[]): TaskStatus {
  if (children.includes("processing")) return "processing";
  if (children.includes("pending")) return "pending";
  if (children.every((status) => status === "completed")) return "completed";
  return "failed";
}

/** Carries out commands on real tables; what handlers would do is decided by the command. */
class Garden {
  readonly #database: Database;
  readonly #stores: Stores;
  readonly #shapes = new Map<string, TreeShape>();
  readonly #abandoned: Claim<object>[] = [];

  constructor(database: Database) {
    this.#database = database;
    this.#stores = openStores(database, queues);
  }

  async run(given: Command): Promise<void> {
    const parts = { database: this.#database, queues };
    switch (given.do) {
      case "plant":
        this.#shapes.set(await plantDocument(this.#stores), given.shape);
        return;
      case "work":
        return this.#work(given.lane, given.limit, given.outcomes);
      case "abandon":
        this.#abandoned.push(...(await this.#stores[given.lane].claim({ worker: "zombie", limit: 2 })));
        return;
      case "rescue":
        return this.#rescue();
      case "retry":
        await this.#on(given.pick, (id) => retryFailed(parts, id));
        return;
      case "cancel":
        await this.#on(given.pick, (id) => cancelWork(parts, id));
        return;
      case "delete":
        await this.#on(given.pick, async (id) => {
          await removeDocuments(parts, [id]);
          this.#shapes.delete(id);
        });
        return;
      case "redo":
        await this.#on(given.pick, (id) => redoPhase(parts, id, given.phase));
        return;
      default:
        given satisfies never;
    }
  }

  async #on(pick: number, change: (id: string) => Promise<unknown>): Promise<void> {
    const ids = [...this.#shapes.keys()];
    if (ids.length > 0) await change(ids[pick % ids.length]!);
  }

  async #work(name: LaneName, limit: number, kinds: readonly string[]): Promise<void> {
    const store = this.#stores[name];
    await store.promoteDelayed();
    for (const [index, claim] of (await store.claim({ worker: "w", limit })).entries()) {
      await store.settle([{ claim, outcome: this.#outcome(name, claim, kinds[index]!) }]);
    }
  }

  #outcome(name: LaneName, claim: Claim<object>, kind: string): Outcome {
    if (kind === "retry") return retry("again", 0);
    if (kind === "failed") return failed("never");
    if (kind === "released") return released();
    if (name === "split") return splitOutcome(this.#stores, claim, this.#shapes.get(String(claim.key))!);
    if (name !== "pageChunk") return done();
    const { document_id, page_number } = claim.row as { document_id: string; page_number: number };
    return chunkOutcome(this.#stores, claim, this.#shapes.get(document_id)!.pages[page_number - 1]!);
  }

  /** Everybody who holds something has fallen silent for long. */
  async #rescue(): Promise<void> {
    const long = "2000-01-01T00:00:00.000Z";
    await this.#database.query(
      `update documents set last_heartbeat = '${long}' where last_heartbeat is not null`,
    );
    for (const [table, phases] of [
      ["task_queue_page", PHASES],
      ["task_queue_chunk", PHASES.slice(1)],
    ] as const) {
      for (const phase of phases) {
        const column = `${phase}_last_heartbeat`;
        await this.#database.query(`update ${table} set ${column} = '${long}' where ${column} is not null`);
      }
    }
    for (const name of LANES) await this.#stores[name].rescueStale();
    const before = await this.#snapshot();
    for (const claim of this.#abandoned.splice(0))
      for (const name of LANES) await this.#stores[name].settle([{ claim, outcome: done() }]);
    assert.deepEqual(await this.#snapshot(), before, "a worker that lost its lease changes nothing");
  }

  async #snapshot(): Promise<Row[]> {
    const pages = await this.#database.query(
      "select id, ocr_status, vector_status, graphrag_status from task_queue_page order by id",
    );
    const chunks = await this.#database.query(
      "select id, vector_status, graphrag_status from task_queue_chunk order by id",
    );
    return [...pages, ...chunks];
  }

  async check(): Promise<void> {
    const documents = await this.#database.query("select * from documents");
    const pages = await this.#database.query("select * from task_queue_page");
    const chunks = await this.#database.query("select * from task_queue_chunk");
    for (const page of pages) {
      const own = chunks.filter((chunk) => chunk.page_id === page.id);
      assert.equal(Number(page.chunk_count), own.length, "a page knows how many chunks it has");
      if (own.length === 0) continue;
      for (const phase of ["vector", "graphrag"] as const) {
        const statuses = own.map((chunk) => chunk[`${phase}_status`] as TaskStatus);
        assert.equal(page[`${phase}_status`], ruleOf(statuses), `page ${phase} follows from its chunks`);
      }
    }
    for (const document of documents) {
      const own = pages.filter((page) => page.document_id === document.id);
      if (own.length === 0) continue;
      for (const phase of PHASES) {
        const column = phase === "ocr" ? "ocr_status" : `${phase}_index_status`;
        const statuses = own.map((page) => page[`${phase}_status`] as TaskStatus);
        assert.equal(document[column], ruleOf(statuses), `document ${phase} follows from its pages`);
      }
    }
  }

  /** With nothing failing any more, everything that was not cancelled or deleted is completed. */
  async finish(): Promise<void> {
    await this.#rescue();
    for (const id of this.#shapes.keys()) await retryFailed({ database: this.#database, queues }, id);
    for (let round = 0; round < 3; round++)
      for (const name of LANES) await this.#work(name, 1_000, Array(1_000).fill("done"));
    const open = await this.#database.query(
      "select id, ocr_status, vector_index_status, graphrag_index_status from documents where ocr_status <> 'completed' or vector_index_status <> 'completed' or graphrag_index_status <> 'completed'",
    );
    assert.deepEqual(open, [], "everything can be finished");
  }
}

for (const { name, open } of DATABASES) {
  describe(`the hierarchy on ${name}`, () => {
    let opened: TestDatabase;
    before(async () => {
      opened = await open();
      for (const queue of Object.values(queues)) await prepareQueue(opened.database, queue);
    });
    after(() => opened.close());

    test("parents follow the four rules at every level, whatever happens below them", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 45 }), async (commands) => {
          await opened.database.query("delete from documents");
          await opened.database.query("delete from document_removals");
          const garden = new Garden(opened.database);
          await garden.run({ do: "plant", shape: { pages: [2, 0, 1] } });
          for (const given of commands) {
            await garden.run(given);
            await garden.check();
          }
          await garden.finish();
          await garden.check();
        }),
        { numRuns: name === "SQLite" ? 150 : 50 },
      );
    });

    test("a phase cannot begin before the one it stands on, not even by hand", async () => {
      await opened.database.query("delete from documents");
      const stores = openStores(opened.database, queues);
      await plantDocument(stores);
      const [claim] = await stores.split.claim({ worker: "w", limit: 1 });
      await stores.split.settle([{ claim: claim!, outcome: splitOutcome(stores, claim!, { pages: [1] }) }]);
      const refused = { code: "constraint_violated" };
      const set = (table: string, column: string) =>
        opened.database.query(`update ${table} set ${column} = 'processing'`);
      await assert.rejects(set("task_queue_page", "vector_status"), refused);
      await assert.rejects(set("task_queue_page", "graphrag_status"), refused);
      await opened.database.query("delete from documents");
      await growTree(opened.database, queues, { pages: [1] });
      await opened.database.query(
        "update task_queue_chunk set graphrag_status = 'pending', vector_status = 'failed'",
      );
      await assert.rejects(set("task_queue_chunk", "graphrag_status"), refused);
    });

    test("one bad page holds up none of the others and says why", async () => {
      await opened.database.query("delete from documents");
      const stores = openStores(opened.database, queues);
      const documentId = await plantDocument(stores);
      const [claim] = await stores.split.claim({ worker: "w", limit: 1 });
      await stores.split.settle([
        { claim: claim!, outcome: splitOutcome(stores, claim!, { pages: [1, 1, 1] }) },
      ]);
      const pages = await stores.pageOcr.claim({ worker: "w", limit: 3 });
      await stores.pageOcr.settle([
        { claim: pages[0]!, outcome: done() },
        { claim: pages[1]!, outcome: failed("page 2: it is torn") },
        { claim: pages[2]!, outcome: done() },
      ]);
      for (const page of await stores.pageChunk.claim({ worker: "w", limit: 3 }))
        await stores.pageChunk.settle([{ claim: page, outcome: chunkOutcome(stores, page, 1) }]);
      const chunks = await stores.chunkVector.claim({ worker: "w", limit: 3 });
      assert.equal(chunks.length, 2);
      await stores.chunkVector.settle(chunks.map((chunk) => ({ claim: chunk, outcome: done() })));
      const [document] = await opened.database.query("select * from documents");
      assert.equal(document!.ocr_status, "failed");
      assert.equal(document!.ocr_error, "page 2: it is torn");
      assert.equal(
        await retryFailed({ database: opened.database, queues }, documentId),
        1,
        "only what failed",
      );
      const again = await stores.pageOcr.claim({ worker: "w", limit: 3 });
      assert.deepEqual(
        again.map(({ key }) => key),
        [pages[1]!.key],
      );
    });
  });
}
