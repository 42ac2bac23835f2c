import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type Change, followChanges } from "../../src/changes.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Desk, openDesk } from "./desk.ts";

for (const { name, open } of DATABASES) {
  describe(`following changes on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    before(async () => {
      test = await open();
      desk = await openDesk(test);
    });
    after(() => test.close());

    /** From its first answer on nothing is missed; `next` gives the changes that come, at least one. */
    async function follow(since?: string) {
      const stopping = new AbortController();
      const changes = followChanges(test.database, { since, signal: stopping.signal });
      assert.deepEqual((await changes.next()).value, { changes: [], isIncomplete: false });
      return {
        next: async () => {
          let some: readonly Change[] = [];
          while (some.length === 0) some = (await changes.next()).value!.changes;
          return some;
        },
        stop: async () => {
          stopping.abort();
          await changes.return(undefined);
        },
      };
    }

    it("tells of a change that bears the same time as the one before", async () => {
      const following = await follow();
      const { id } = await desk.jobs.create({ input_text: "quick" });
      const [made] = await following.next();
      assert.deepEqual([made!.row.id, made!.row.status], [id, "pending"]);
      await desk.query("update embedding_jobs set priority = 'urgent' where input_text = 'quick'");
      const [changed] = await following.next();
      assert.deepEqual([changed!.row.id, changed!.row.priority, changed!.at], [id, "urgent", made!.at]);
      await following.stop();
    });

    it("does not tell what had happened before", async () => {
      const { id } = await desk.jobs.create({ input_text: "old news" });
      const following = await follow();
      const fresh = await desk.jobs.create({ input_text: "news" });
      const seen = (await following.next()).map(({ row }) => row.id);
      assert.ok(seen.includes(fresh.id) && !seen.includes(id));
      await following.stop();
    });

    it("goes on from the last one told, and misses nothing that was written late", async () => {
      const [first, second] = await desk.jobs.createMany([{ input_text: "late" }, { input_text: "seen" }]);
      const at = new Date().toISOString();
      const before = new Date(Date.parse(at) - 1_000).toISOString();
      const write = `update embedding_jobs set updated_at = ${test.database.dialect.mark(1)} where id = ${test.database.dialect.mark(2)}`;
      await desk.query(write, [at, second!.id]);
      await desk.query(write, [before, first!.id]);
      const { next, stop } = await follow(at);
      assert.ok((await next()).some(({ row }) => row.id === first!.id));
      await stop();
    });
  });
}

describe("following changes on PostgreSQL", () => {
  it("tells of a transaction that began before anybody followed and ended after", async () => {
    const test = await DATABASES.find(({ name }) => name === "PostgreSQL")!.open();
    await openDesk(test);
    const slow = new pg.Client({ connectionString: test.url });
    await slow.connect();
    await slow.query("begin");
    await slow.query("insert into embedding_jobs (input_text, text_hash) values ('slow', 'hash')");
    const stopping = new AbortController();
    const changes = followChanges(test.database, { signal: stopping.signal });
    await changes.next();
    await slow.query("commit");
    await slow.end();
    let told: readonly Change[] = [];
    while (told.length === 0) told = (await changes.next()).value!.changes;
    assert.equal(told[0]!.row.status, "pending");
    stopping.abort();
    await changes.return(undefined);
    await test.close();
  });
});
