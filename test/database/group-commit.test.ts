import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { systemClock } from "../../src/clock.ts";
import { type Connection, GroupCommit } from "../../src/database/group-commit.ts";

describe("group commit", () => {
  let folder: string;
  let files = 0;
  const opened: DatabaseSync[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-groups-"));
  });
  after(async () => {
    for (const database of opened) database.close();
    await rm(folder, { recursive: true });
  });

  function open() {
    const file = join(folder, `${files++}.db`);
    const database = new DatabaseSync(file);
    database.exec("pragma journal_mode = wal; create table t (a integer primary key check (a > 0))");
    const other = new DatabaseSync(file);
    opened.push(database, other);
    let commits = 0;
    const connection: Connection = {
      run: (sql) => {
        database.exec(sql);
        if (sql === "commit") commits++;
      },
      begin: async () => database.exec("begin immediate"),
      isTransaction: () => database.isTransaction,
    };
    const groups = new GroupCommit(connection, systemClock);
    const insert = async (a: number) => void database.exec(`insert into t values (${a})`);
    return {
      database,
      groups,
      insert,
      write: (a: number) => groups.inTurn("writer", () => insert(a)),
      read: () => groups.inTurn("reader", async () => rowsOf(database)),
      /** What another process would find. */
      kept: () => rowsOf(other),
      commits: () => commits,
    };
  }

  it("writers that come in one turn of the event loop share a commit", async () => {
    const { write, kept, commits } = open();
    // As requests come in: each by an event of its own.
    const writers = Array.from({ length: 20 }, (_, i) => turn().then(() => write(i + 1)));
    await Promise.all(writers);
    assert.equal(kept().length, 20);
    assert.ok(commits() <= 3, `${commits()} commits`);
  });

  it("nobody is told before others can see it", async () => {
    const { write, kept } = open();
    const seen = await Promise.all(
      Array.from({ length: 30 }, (_, i) => write(i + 1).then(() => kept().includes(i + 1))),
    );
    assert.ok(seen.every(Boolean));
  });

  it("one that fails is undone alone", async () => {
    const { write, groups, insert, kept } = open();
    const half = async () => {
      await insert(10);
      await insert(-1);
    };
    const results = await Promise.allSettled([
      write(1),
      groups.inTurn("writer", half),
      write(2),
      write(1),
      write(3),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"],
    );
    assert.deepEqual(kept(), [1, 2, 3]);
  });

  it("the first that fails takes nobody with it", async () => {
    const { write, kept } = open();
    const results = await Promise.allSettled([write(-1), write(1), write(2)]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ["rejected", "fulfilled", "fulfilled"],
    );
    assert.deepEqual(kept(), [1, 2]);
  });

  it("when the commit fails all are told so, also who had read what is not there", async () => {
    const { database, groups, write, read, kept } = open();
    database.exec(
      "pragma foreign_keys = on; create table child (a integer references t (a) deferrable initially deferred)",
    );
    const orphan = groups.inTurn("writer", async () => database.exec("insert into child values (99)"));
    const results = await Promise.allSettled([orphan, write(1), read()]);
    assert.ok(results.every(({ status }) => status === "rejected"));
    assert.deepEqual(kept(), []);
    await write(2);
    assert.deepEqual(kept(), [2]);
  });

  it("who failed because of another is told so only if that other's work stands", async () => {
    const { database, groups, write } = open();
    database.exec(
      "pragma foreign_keys = on; create table child (a integer references t (a) deferrable initially deferred)",
    );
    const orphan = groups.inTurn("writer", async () => database.exec("insert into child values (99)"));
    const results = await Promise.allSettled([orphan, write(1), write(1)]);
    const reasons = results.map((result) => String((result as PromiseRejectedResult).reason));
    assert.ok(
      reasons.every((reason) => /FOREIGN KEY/.test(reason)),
      reasons.join("; "),
    );
  });

  it("when SQLite rolls back everything by itself all are told so", async () => {
    const { database, groups, write, kept } = open();
    const fillDisk = async () => {
      database.exec("rollback");
      throw new Error("the disk is full");
    };
    const results = await Promise.allSettled([write(1), write(2), groups.inTurn("writer", fillDisk)]);
    for (const result of results)
      assert.match(String((result as PromiseRejectedResult).reason), /disk is full/);
    await write(3);
    assert.deepEqual(kept(), [3]);
  });

  it("what must be alone waits for the commit before it, and who comes later waits for it", async () => {
    const { database, groups, write, kept } = open();
    const isInside: boolean[] = [];
    const alone = () => groups.inTurn("alone", async () => isInside.push(database.isTransaction));
    await Promise.all([write(1), alone(), write(2), alone(), write(3)]);
    assert.deepEqual(isInside, [false, false]);
    assert.deepEqual(kept(), [1, 2, 3]);
  });

  it("each runs in the context of its own caller", async () => {
    const { groups } = open();
    const storage = new AsyncLocalStorage<string>();
    const found = await Promise.all(
      ["a", "b", "c"].map((name) =>
        storage.run(name, () => groups.inTurn("writer", async () => storage.getStore())),
      ),
    );
    assert.deepEqual(found, ["a", "b", "c"]);
  });

  it("whatever comes when, and fails or not: what is kept is what was told", async () => {
    const attempt = fc.record({
      value: fc.integer({ min: -2, max: 12 }),
      comesAfterMs: fc.nat({ max: 3 }),
      takesMs: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
      isReader: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(attempt, { maxLength: 25 }), async (attempts) => {
        const { groups, insert, kept, read } = open();
        const told = new Set<number>();
        await Promise.all(
          attempts.map(async ({ value, comesAfterMs, takesMs, isReader }) => {
            await sleep(comesAfterMs);
            if (isReader) {
              const rows = await read();
              assert.ok(rows.every((row) => kept().includes(row)));
              return;
            }
            const work = async () => {
              await insert(value);
              if (takesMs !== undefined) await sleep(takesMs);
            };
            await groups.inTurn(takesMs === undefined ? "statement" : "writer", work).then(
              () => told.add(value),
              () => undefined,
            );
          }),
        );
        assert.deepEqual(
          kept(),
          [...told].sort((a, b) => a - b),
        );
      }),
      { numRuns: 60 },
    );
  });
});

function rowsOf(database: DatabaseSync): number[] {
  return database
    .prepare("select a from t order by a")
    .all()
    .map((row) => Number(row.a));
}
