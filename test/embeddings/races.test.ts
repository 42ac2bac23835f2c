import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { done, openDatabase } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { withPoints } from "../support/points.ts";
import { type Desk, openDesk, until, vectorOf } from "./desk.ts";

for (const { name, open } of DATABASES) {
  describe(`races of embedding jobs on ${name}`, () => {
    let test: TestDatabase;
    let other: TestDatabase;
    let desks: Desk[];
    before(async () => {
      test = await open();
      // A second connection of its own, as another process would have.
      const database = openDatabase(test.url);
      other = { ...test, database, close: () => database.close() };
      desks = [await openDesk(test), await openDesk(other)];
    });
    after(async () => {
      await other.close();
      await test.close();
    });

    it("a twin in flight elsewhere is joined, not repeated", async () => {
      const [here, there] = desks as [Desk, Desk];
      const goOn = Promise.withResolvers<void>();
      const started = Promise.withResolvers<void>();
      here.before = async (texts) => {
        // Either process may take the beacon; it must come through.
        if (!texts.includes("basalt")) return;
        started.resolve();
        await goOn.promise;
      };
      const first = await here.jobs.create({ input_text: "basalt" });
      const crew = await here.work();
      await started.promise;
      // The other process has nothing to do with the twins, though it looks for work all the time.
      const twins = await there.jobs.createMany(Array(5).fill({ input_text: "basalt" }));
      const secondCrew = await there.work();
      const beacon = await there.jobs.create({ input_text: "beacon" });
      await until(async () => (await there.jobs.read(beacon.id)).status === "completed");
      for (const { id } of twins) assert.equal((await there.jobs.read(id)).status, "pending");
      goOn.resolve();
      for (const { id } of [first, ...twins])
        await until(async () => (await here.jobs.read(id)).status === "completed");
      assert.deepEqual([...here.calls, ...there.calls].flat().toSorted(), ["basalt", "beacon"]);
      await Promise.all([crew.stop(), secondCrew.stop()]);
    });

    it("a text that two processes bring at the same moment is embedded once", async () => {
      const places = [test.database, other.database].map((database) => withPoints(database));
      const [here, there] = (await Promise.all(
        places.map(({ database }) => openDesk({ ...test, database })),
      )) as [Desk, Desk];
      // Neither sees the other's job before it writes its own.
      const holds = places.map(({ points }) => points.hold("before embeddings.enqueue"));
      const made = [here, there].map((desk) => desk.jobs.create({ input_text: "brought twice" }));
      for (const { reached } of holds) await reached;
      for (const { release } of holds) release();
      const ids = (await Promise.all(made)).map(({ id }) => id);
      const [row] = await here.query("select count(*) as turns from embedding_jobs where has_turn");
      assert.equal(row!.turns, 1);
      const crews = await Promise.all([here.work(), there.work()]);
      for (const id of ids) await until(async () => (await here.jobs.read(id)).status === "completed");
      assert.deepEqual([...here.calls, ...there.calls].flat(), ["brought twice"]);
      await Promise.all(crews.map((crew) => crew.stop()));
    });

    it("a twin goes on when the one in flight is cancelled", async () => {
      const [here] = desks as [Desk];
      const started = Promise.withResolvers<void>();
      let isFirst = true;
      here.before = async (_texts, signal) => {
        if (!isFirst) return;
        isFirst = false;
        started.resolve();
        await new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      };
      const first = await here.jobs.create({ input_text: "gneiss" });
      const crew = await here.work();
      await started.promise;
      const twin = await here.jobs.create({ input_text: "gneiss" });
      await here.jobs.cancel(first.id);
      await until(async () => (await here.jobs.read(twin.id)).status === "completed");
      here.before = async () => undefined;
      await crew.stop();
    });

    it("a job that is cancelled costs those embedded beside it nothing", async () => {
      const [here] = desks as [Desk];
      const goOn = Promise.withResolvers<void>();
      const noticed = Promise.withResolvers<void>();
      const started = new Set<string>();
      here.before = async (texts, signal) => {
        for (const text of texts) started.add(text);
        const aborted = new Promise<never>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            noticed.resolve();
            reject(signal.reason);
          });
        });
        await Promise.race([goOn.promise, aborted]);
      };
      const [wanted, unwanted] = await here.jobs.createMany([
        { input_text: "slate is wanted" },
        { input_text: "chalk is not" },
      ]);
      // So few tokens a call that each is asked about alone.
      const crew = await here.work({ tokensMax: 3 });
      await until(async () => started.size === 2);
      await here.jobs.cancel(unwanted!.id);
      await noticed.promise;
      goOn.resolve();
      await until(async () => (await here.jobs.read(wanted!.id)).status !== "processing");
      const { status, attempts } = await here.jobs.read(wanted!.id);
      assert.deepEqual([status, attempts], ["completed", 1]);
      here.before = async () => undefined;
      await crew.stop();
    });

    it("a worker that lost its lease gives its vector to nobody", async () => {
      const [here] = desks as [Desk];
      await here.query("insert into rules (rule_id, title, guidance) values ('R', 'late', 'text')");
      const [stale] = await here.store.claim({ worker: "stale", limit: 1 });
      assert.equal(stale!.row.input_text, "late text ");
      await here.query(
        "update embedding_jobs set lease_until = '2000-01-01T00:00:00Z' where status = 'processing'",
      );
      await here.store.rescueStale();
      const vector = vectorOf("wrong");
      const [verdict] = await here.store.settle([
        { claim: stale!, outcome: done({ embedding_vector: vector, embedding_dimensions: 8 }) },
      ]);
      assert.equal(verdict, "lost");
      const [rule] = await here.query("select embedding from rules where rule_id = 'R'");
      assert.equal(rule!.embedding, null);
    });

    it("a job whose workers die until its attempts are spent is a dead letter", async () => {
      const [here] = desks as [Desk];
      await here.query("delete from embedding_jobs");
      const { id } = await here.jobs.create({ input_text: "deadly", max_attempts: 2 });
      for (const worker of ["one", "two"]) {
        await here.query("update embedding_jobs set run_after = null");
        await here.store.repair();
        const claims = await here.store.claim({ worker, limit: 1 });
        assert.equal(claims.length, 1);
        await here.query("update embedding_jobs set lease_until = '2000-01-01T00:00:00Z'");
        await here.store.rescueStale();
      }
      const dead = await here.jobs.read(id);
      assert.deepEqual([dead.status, dead.attempts, dead.worker_id], ["failed", 2, "two"]);
      assert.match(dead.error_message!, /^Max attempts exceeded: /);
    });
  });
}

describe("races of rules on PostgreSQL", () => {
  it("whoever changes a rule and whoever brings its vector do not wait for each other", async () => {
    const test = await DATABASES.find(({ name }) => name === "PostgreSQL")!.open();
    const desk = await openDesk(test);
    await desk.query(
      "insert into rules (rule_id, title, guidance) values ('R1', 'same', 'text'), ('R2', 'same', 'text')",
    );
    const [claim] = await desk.store.claim({ worker: "w", limit: 1 });
    const [job] = await desk.query("select rule_id from embedding_jobs where status = 'processing'");
    const writer = new pg.Client({ connectionString: test.url });
    await writer.connect();
    await writer.query("begin");
    await writer.query("update rules set priority = 'high' where id <> $1", [job!.rule_id]);
    const vector = vectorOf("same text ");
    const settling = desk.store.settle([
      { claim: claim!, outcome: done({ embedding_vector: vector, embedding_dimensions: 8 }) },
    ]);
    // PostgreSQL looks for deadlocks a second after a wait began, and ends whoever looks: here that must be the writer.
    await until(async () => {
      const rows = await desk.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and clock_timestamp() > query_start + interval '1.5 s'",
      );
      return rows.length > 0;
    });
    await writer.query("update rules set title = 'another' where id <> $1", [job!.rule_id]);
    await writer.query("commit");
    await writer.end();
    assert.deepEqual(await settling, ["done"]);
    const rules = await desk.query(
      "select title, embedding is not null as has_vector from rules order by rule_id",
    );
    assert.deepEqual(rules.map((rule) => [rule.title, rule.has_vector]).toSorted(), [
      ["another", false],
      ["same", true],
    ]);
    await test.close();
  });

  it("two transactions that write the same text at once both get their vector, from one call", async () => {
    const test = await DATABASES.find(({ name }) => name === "PostgreSQL")!.open();
    const desk = await openDesk(test);
    const clients = [1, 2].map(() => new pg.Client({ connectionString: test.url }));
    for (const client of clients) await client.connect();
    const insert = "insert into rules (rule_id, title, guidance) values ('R', 'at', 'once')";
    await clients[0]!.query("begin");
    await clients[1]!.query("begin");
    await clients[0]!.query(insert);
    // Waits for the first, which may still be undone.
    const second = clients[1]!.query(insert);
    await until(async () => {
      const rows = await desk.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
      return rows.length > 0;
    });
    await clients[0]!.query("commit");
    await second;
    await clients[1]!.query("commit");
    for (const client of clients) await client.end();
    const crew = await desk.work();
    await until(
      async () => (await desk.query("select 1 from rules where embedding is not null")).length === 2,
    );
    assert.deepEqual(desk.calls, [["at once "]]);
    await crew.stop();
    await test.close();
  });
});
