import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openPgvector } from "../../../src/adapters/vectors/pgvector.ts";
import { openPostgres } from "../../../src/database/postgres.ts";
import { PGVECTOR, type TestDatabase } from "../../support/databases.ts";
import { withPoints } from "../../support/points.ts";
import { freshPostgres } from "../../support/postgres.ts";
import { clusteredVectors, scatteredVectors } from "../../support/vectors.ts";
import { SUITE_DIMENSIONS, testVectorStore } from "./conformance.ts";
import { fill, recallOf, TENANT } from "./recall.ts";

/** One for all tests of this file: it takes seconds to start. */
let opened: Promise<TestDatabase> | undefined;
const openDatabase = () => (opened ??= PGVECTOR.open());
after(async () => (await opened)?.close());

testVectorStore("PostgreSQL with pgvector", async () => {
  const { database } = await openDatabase();
  const store = await openPgvector(database, { model: "test", dimensions: SUITE_DIMENSIONS });
  return { store, close: () => store.close() };
});

describe("how well pgvector finds the nearest", () => {
  let database: TestDatabase["database"];
  before(async () => {
    ({ database } = await openDatabase());
  });
  const size = { count: 1_000, queries: 20, dimensions: 64 };

  for (const [name, make, floor] of [
    ["scattered", scatteredVectors, 0.95],
    ["clustered", clusteredVectors, 0.98],
  ] as const) {
    it(`finds at least ${100 * floor} of 100 among ${name} vectors by its index, also within a filter`, async (t) => {
      const watched = withPoints(database);
      const settings = { model: name, dimensions: size.dimensions, comparedMax: 5 };
      const store = await openPgvector(watched.database, settings);
      t.after(() => store.clear());
      const set = make(size);
      await fill(store, set.vectors);
      for (const collection of [undefined, "c", "rare"]) {
        const recall = await recallOf(store, set, { limit: 5, ...(collection && { collection }) });
        t.diagnostic(`recall@5 in ${collection ?? "all"}: ${recall.toFixed(4)}`);
        assert.ok(recall >= floor, `recall@5 in ${collection} is ${recall}`);
      }
      assert.equal(
        watched.points.counts.get("vectors.compare"),
        undefined,
        "nothing was compared one by one",
      );
    });
  }

  it("compares one by one when the index gave too few", async (t) => {
    const watched = withPoints(database);
    const store = await openPgvector(watched.database, { model: "few", dimensions: 64, comparedMax: 5 });
    t.after(() => store.clear());
    const set = clusteredVectors({ ...size, count: 600 });
    await fill(store, set.vectors);
    const filter = { tenant: TENANT, collection: "rare" };
    const hits = await store.search(set.queries[0]!, { limit: 10, filter });
    assert.equal(hits.length, 6, "all that there are");
    assert.equal(watched.points.counts.get("vectors.compare"), 1);
  });

  it("walks its index even where the planner knows nothing of the filter", async () => {
    const store = await openPgvector(database, { model: "plan", dimensions: 8 });
    await store.upsert([
      {
        chunkId: "a",
        documentId: crypto.randomUUID(),
        tenant: TENANT,
        collection: "c",
        vector: Float32Array.of(1, 0, 0, 0, 0, 0, 0, 0),
      },
    ]);
    const [table] = await database.query(
      "select relname as name from pg_class where relname like 'vectors_plan_%' and relkind = 'r'",
    );
    const plan = await database.transaction(async (session) => {
      await session.query(
        `prepare walk (text, text, uuid[], vector) as select chunk_id from ${table!.name} where tenant = $1 and ($2::text is null or collection = $2) and ($3::uuid[] is null or document_id = any($3)) order by embedding <#> $4 limit 10`,
      );
      const rows = await session.query("explain execute walk ('t', null, null, '[1,0,0,0,0,0,0,0]')");
      await session.query("deallocate walk");
      return rows.map((row) => Object.values(row)[0]).join("\n");
    });
    assert.match(plan, /Index Scan using vectors_plan_\w+_nearest/);
    await store.clear();
  });

  it("keeps models apart, long vectors in 16 bits, and longer ones without an index", async (t) => {
    for (const [dimensions, type, indexes] of [
      [2_000, "vector", 1],
      [2_001, "halfvec", 1],
      [4_001, "halfvec", 0],
    ] as const) {
      const store = await openPgvector(database, { model: `${dimensions}`, dimensions });
      t.after(() => store.clear());
      const vector = Float32Array.from({ length: dimensions }, (_none, at) => Math.sin(at + 1));
      await store.upsert([
        { chunkId: "a", documentId: crypto.randomUUID(), tenant: TENANT, collection: "c", vector },
      ]);
      const [hit] = await store.search(vector, { limit: 1, filter: { tenant: TENANT } });
      assert.ok(Math.abs(hit!.score - 1) < 0.001, `${hit!.score}`);
      const [table] = await database.query(
        "select c.relname as name, format_type(a.atttypid, -1) as type, (select count(*) from pg_indexes where tablename = c.relname and indexdef like '%hnsw%') as indexes from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attname = 'embedding' where c.relkind = 'r' and c.relname like $1",
        [`vectors_${dimensions}_%`],
      );
      assert.deepEqual([table?.type, table?.indexes], [type, indexes]);
    }
  });

  it("writes nothing when the same is written again", async (t) => {
    const store = await openPgvector(database, { model: "again", dimensions: 8 });
    t.after(() => store.clear());
    const point = {
      ...{ chunkId: "a", documentId: crypto.randomUUID(), tenant: TENANT, collection: "c" },
      vector: Float32Array.from({ length: 8 }, (_none, at) => Math.sin(at + 1)),
    };
    const [table] = await database.query(
      "select relname as name from pg_class where relname like 'vectors_again_%' and relkind = 'r'",
    );
    const versions = () => database.query(`select xmin::text as version from ${table!.name}`);
    await store.upsert([point]);
    const first = await versions();
    await store.upsert([point]);
    assert.deepEqual(await versions(), first);
    await store.upsert([{ ...point, collection: "d" }]);
    assert.notDeepEqual(await versions(), first);
  });
});

describe("a PostgreSQL without pgvector", () => {
  it("is refused with what to do", async (t) => {
    const { url, drop } = await freshPostgres();
    const database = openPostgres({ url });
    t.after(async () => {
      await database.close();
      await drop();
    });
    const [offered] = await database.query(
      "select 1 as found from pg_available_extensions where name = 'vector'",
    );
    if (offered) return t.diagnostic("this PostgreSQL has it");
    await assert.rejects(openPgvector(database, { model: "m", dimensions: 3 }), {
      code: "invalid_input",
      message: /no pgvector: install it.*QUARRY_VECTORS/,
    });
  });
});
