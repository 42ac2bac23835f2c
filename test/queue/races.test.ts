import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { NOTIFY_EVERY_MS } from "../../src/database/notifications.ts";
import { type Claim, type Database, done, failed, openDatabase, openQueue, retry } from "../../src/index.ts";
import { type Points, withPoints } from "../support/points.ts";
import { freshPostgres } from "../support/postgres.ts";
import { chunks, rowOf, schema, sms, steps, strides } from "./fixture.ts";

/** Two processes in miniature: two connections of their own, each with points to hold it at. */
interface Pair {
  readonly one: Database;
  readonly two: Database;
  readonly points: readonly [Points, Points];
  /** One more connection, without points. */
  another(): Database;
  close(): Promise<void>;
}

async function openPair(url: string, cleanUp: () => Promise<void>): Promise<Pair> {
  const [first, second] = [openDatabase(url), openDatabase(url)];
  for (const sql of schema(first.dialect.name)) await first.query(sql);
  const [one, two] = [withPoints(first), withPoints(second)];
  return {
    one: one.database,
    two: two.database,
    points: [one.points, two.points],
    another: () => openDatabase(url, { poolMax: 2 }),
    close: async () => {
      await first.close();
      await second.close();
      await cleanUp();
    },
  };
}

const OPENERS: Record<string, () => Promise<Pair>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-race-"));
    return openPair(join(folder, "quarry.db"), () => rm(folder, { recursive: true }));
  },
  PostgreSQL: async () => {
    const { url, drop } = await freshPostgres();
    return openPair(url, drop);
  },
};

/** Long enough for a statement that is not blocked to have finished; a test never fails because it is too short. */
const A_MOMENT_MS = 50;

for (const [name, open] of Object.entries(OPENERS)) {
  describe(`races on ${name}`, () => {
    let pair: Pair;
    before(async () => {
      pair = await open();
    });
    after(() => pair.close());

    const family = async (children: number) => {
      const [book] = await pair.one.query("insert into books (status) values ('pending') returning id");
      const [section] = await pair.one.query(
        `insert into sections (book_id, status) values (${book!.id}, 'pending') returning id`,
      );
      const rows = Array.from({ length: children }, () => ({ section_id: section!.id }));
      await openQueue(pair.one, chunks).enqueue(rows);
      return { book: Number(book!.id), section: Number(section!.id) };
    };
    const statuses = async ({ book, section }: { book: number; section: number }) => [
      (await rowOf(pair.one, "sections", section)).status,
      (await rowOf(pair.one, "books", book)).status,
    ];
    const expire = (table: string, claim: Claim<object>) =>
      pair.one.query(
        `update ${table} set lease_until = '2020-01-01T00:00:00.000Z' where id = '${claim.key}'`,
      );
    const claimAll = async (database: Database, limit: number) =>
      openQueue(database, chunks).claim({ worker: "w", limit });

    it("two claimers, one held after its claim: each row goes to one of them", async () => {
      await family(6);
      const held = pair.points[0].hold(name === "PostgreSQL" ? "after chunks.claim" : "after chunks.mark");
      const first = claimAll(pair.one, 3);
      await held.reached;
      const second = claimAll(pair.two, 10);
      await sleep(A_MOMENT_MS);
      held.release();
      const keys = (await Promise.all([first, second])).flat().map((claim) => claim.key);
      assert.equal(keys.length, 6);
      assert.equal(new Set(keys).size, 6);
      await settleAll(keys.length);
    });

    async function settleAll(expected: number): Promise<void> {
      const store = openQueue(pair.one, chunks);
      const running = await store.list({ status: "processing", limit: 1_000 });
      assert.equal(running.rows.length, expected);
      await pair.one.query("delete from chunks");
    }

    it("a rescue that comes while a completion commits leaves it alone", async () => {
      await family(1);
      const [claim] = await claimAll(pair.one, 1);
      await expire("chunks", claim!);
      const held = pair.points[0].hold("after chunks.complete");
      const settled = openQueue(pair.one, chunks).settle([{ claim: claim!, outcome: done() }]);
      await held.reached;
      const rescued = openQueue(pair.two, chunks).rescueStale();
      await sleep(A_MOMENT_MS);
      held.release();
      assert.deepEqual(await settled, ["done"]);
      assert.deepEqual(await rescued, []);
      assert.equal((await rowOf(pair.one, "chunks", claim!.key)).status, "completed");
    });

    it("a completion that comes while a rescue commits is refused", async () => {
      const parents = await family(1);
      const [claim] = await claimAll(pair.one, 1);
      await expire("chunks", claim!);
      const held = pair.points[1].hold("after chunks.rescue");
      const rescued = openQueue(pair.two, chunks).rescueStale();
      await held.reached;
      const settled = openQueue(pair.one, chunks).settle([{ claim: claim!, outcome: done() }]);
      await sleep(A_MOMENT_MS);
      held.release();
      assert.equal((await rescued).length, 1);
      assert.deepEqual(await settled, ["lost"]);
      assert.deepEqual(await statuses(parents), ["pending", "pending"]);
      await pair.one.query("delete from chunks");
    });

    it("two rescuers take a silent worker's row once", async () => {
      await family(1);
      const [claim] = await claimAll(pair.one, 1);
      await expire("chunks", claim!);
      const held = pair.points[0].hold("after chunks.rescue");
      const first = openQueue(pair.one, chunks).rescueStale();
      await held.reached;
      const second = openQueue(pair.two, chunks).rescueStale();
      await sleep(A_MOMENT_MS);
      held.release();
      assert.equal((await Promise.all([first, second])).flat().length, 1);
      assert.equal((await rowOf(pair.one, "chunks", claim!.key)).attempts, 1);
      await pair.one.query("delete from chunks");
    });

    it("a zombie whose settlement is on its way when the row is taken over is refused", async () => {
      await openQueue(pair.one, sms).enqueue([{ recipient: "a" }]);
      const texts = [openQueue(pair.one, sms), openQueue(pair.two, sms)] as const;
      const [zombie] = await texts[0].claim({ worker: "zombie", limit: 1 });
      const held = pair.points[0].hold(name === "PostgreSQL" ? "before sms.complete" : "before transaction");
      const late = texts[0].settle([{ claim: zombie!, outcome: done() }]);
      await held.reached;
      await pair.two.query("update messages set lease_until = '2020-01-01T00:00:00.000Z'");
      await texts[1].rescueStale();
      const [owner] = await texts[1].claim({ worker: "owner", limit: 1 });
      held.release();
      assert.deepEqual(await late, ["lost"]);
      assert.deepEqual(await texts[1].settle([{ claim: owner!, outcome: retry("mine", 0) }]), ["retrying"]);
      await pair.one.query("delete from messages");
    });

    it("a cancel that comes while a completion commits is too late, and the other way round", async () => {
      await family(2);
      const [a, b] = await claimAll(pair.one, 2);
      const stores = [openQueue(pair.one, chunks), openQueue(pair.two, chunks)] as const;
      const completing = pair.points[0].hold("after chunks.complete");
      const settled = stores[0].settle([{ claim: a!, outcome: done() }]);
      await completing.reached;
      const tooLate = stores[1].cancel([a!.key]);
      await sleep(A_MOMENT_MS);
      completing.release();
      assert.deepEqual(await settled, ["done"]);
      assert.deepEqual([...(await tooLate).values()], ["too_late"]);

      const cancelling = pair.points[1].hold("after chunks.cancel");
      const cancelled = stores[1].cancel([b!.key]);
      await cancelling.reached;
      const refused = stores[0].settle([{ claim: b!, outcome: done() }]);
      await sleep(A_MOMENT_MS);
      cancelling.release();
      assert.deepEqual([...(await cancelled).values()], ["aborted"]);
      assert.deepEqual(await refused, ["lost"]);
      await pair.one.query("delete from chunks");
    });

    const rounds = name === "PostgreSQL" ? 100 : 20;
    it(`the last two children of a parent finish together: it is never left open (${rounds} rounds)`, async () => {
      for (let round = 0; round < rounds; round++) {
        const parents = await family(2);
        const [a, b] = await claimAll(pair.one, 2);
        // Both have written their child and neither has looked at the parent yet. SQLite lets only one in.
        const held = pair.points[0].hold(
          name === "PostgreSQL" ? "before chunks.parent0.lock" : "before chunks.parent0.derive",
        );
        const first = openQueue(pair.one, chunks).settle([{ claim: a!, outcome: done() }]);
        await held.reached;
        const other = name === "PostgreSQL" ? pair.points[1].hold("before chunks.parent0.lock") : undefined;
        const second = openQueue(pair.two, chunks).settle([
          { claim: b!, outcome: round % 2 ? done() : failed("x") },
        ]);
        await other?.reached;
        held.release();
        other?.release();
        assert.deepEqual(await Promise.all([first, second]), [["done"], [round % 2 ? "done" : "failed"]]);
        const expected = round % 2 ? "completed" : "failed";
        assert.deepEqual(await statuses(parents), [expected, expected], `round ${round}`);
      }
    });

    it("a claim and a settlement of two children at once: the parent ends up running", async () => {
      for (let round = 0; round < 20; round++) {
        await pair.one.query("delete from chunks");
        const parents = await family(2);
        const [a] = await claimAll(pair.one, 1);
        const point = name === "PostgreSQL" ? "before chunks.parent0.lock" : "before chunks.parent0.derive";
        const held = pair.points[0].hold(point);
        const settled = openQueue(pair.one, chunks).settle([{ claim: a!, outcome: done() }]);
        await held.reached;
        const claiming = claimAll(pair.two, 1);
        await sleep(round % 2 ? 5 : 0);
        held.release();
        await settled;
        const [b] = await claiming;
        assert.deepEqual(await statuses(parents), ["processing", "processing"]);
        await openQueue(pair.one, chunks).settle([{ claim: b!, outcome: done() }]);
        assert.deepEqual(await statuses(parents), ["completed", "completed"]);
      }
    });

    for (const queue of [steps, strides]) {
      it(`${queue.name}: the last of a group finishes while the next is enqueued: it is not stranded`, async () => {
        const stores = [openQueue(pair.one, queue), openQueue(pair.two, queue)] as const;
        const points = pair.one.dialect.isSerial
          ? ([`before ${queue.name}.anyBehind`, `after ${queue.name}.anyBehind`] as const)
          : ([`before ${queue.name}.pass`] as const);
        for (let round = 0; round < 20; round++) {
          const entity = { entity_type: "worker", entity_id: `race${round}` };
          await stores[0].enqueue([entity]);
          const [claim] = await stores[0].claim({ worker: "w", limit: 1 });
          // The settlement is committed, its turn not passed; the enqueuer looks for a holder in between, or after.
          const passing = pair.points[0].hold(points[round % points.length]!);
          const settled = stores[0].settle([{ claim: claim!, outcome: done() }]);
          await passing.reached;
          const enqueued = stores[1].enqueue([entity]);
          if (round % 4 < 2) await enqueued;
          passing.release();
          await Promise.all([settled, enqueued]);
          const [next] = await stores[1].claim({ worker: "w", limit: 1 });
          assert.ok(next, `round ${round}: the group has no turn`);
          await stores[1].settle([{ claim: next, outcome: done() }]);
        }
      });

      it(`${queue.name}: two begin a group at the same moment: one has the turn, the other gets it afterwards`, async () => {
        const entity = { entity_type: "worker", entity_id: "begun twice" };
        let enqueued: Promise<unknown> | undefined;
        await pair.one.transaction(async (transaction) => {
          await transaction.query(
            `insert into ${queue.table} (entity_type, entity_id, has_turn, created_at) values ('worker', 'begun twice', true, '2026-01-01T00:00:00.000Z')`,
          );
          // Sees nobody in line, and waits for whoever is about to commit.
          enqueued = openQueue(pair.two, queue).enqueue([entity]);
          await sleep(A_MOMENT_MS);
        });
        await enqueued;
        const store = openQueue(pair.one, queue);
        for (let round = 0; round < 2; round++) {
          const claims = await store.claim({ worker: "w", limit: 10 });
          assert.equal(claims.length, 1);
          await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
        }
        assert.deepEqual(await store.claim({ worker: "w", limit: 10 }), []);
      });

      it(`${queue.name}: as many groups as are looked for at once finish while the next of each is enqueued`, async () => {
        const entities = Array.from({ length: 30 }, (_unused, n) => ({
          entity_type: "worker",
          entity_id: `many${n}`,
        }));
        const stores = [openQueue(pair.one, queue), openQueue(pair.two, queue)] as const;
        for (const point of [`before ${queue.name}.anyBehind`, `after ${queue.name}.anyBehind`] as const) {
          await stores[0].enqueue(entities);
          const claims = await stores[0].claim({ worker: "w", limit: 100 });
          assert.equal(claims.length, entities.length);
          const looking = pair.points[0].hold(point);
          const settled = stores[0].settle(claims.map((claim) => ({ claim, outcome: done() })));
          await looking.reached;
          await stores[1].enqueue(entities);
          looking.release();
          await settled;
          const next = await stores[1].claim({ worker: "w", limit: 100 });
          assert.equal(next.length, entities.length, point);
          await stores[1].settle(next.map((claim) => ({ claim, outcome: done() })));
        }
      });

      it(`${queue.name}: one row of a group at a time, under 12 claimers`, async () => {
        const databases = Array.from({ length: 12 }, () => pair.another());
        const rows = Array.from({ length: 240 }, (_unused, position) => ({
          entity_type: "worker",
          entity_id: `g${position % 8}`,
          position,
        }));
        await openQueue(pair.one, queue).enqueue(rows);
        const running = new Map<string, unknown>();
        const order = new Map<string, number[]>();
        let left = rows.length;
        const work = async (database: Database) => {
          const store = openQueue(database, queue);
          while (left > 0) {
            const claims = await store.claim({ worker: "w", limit: 2 });
            for (const { key, row } of claims) {
              assert.equal(running.get(row.entity_id), undefined, `${row.entity_id} runs twice`);
              running.set(row.entity_id, key);
              order.set(row.entity_id, [...(order.get(row.entity_id) ?? []), row.position]);
            }
            await sleep(Math.random() * 3);
            for (const { row } of claims) running.delete(row.entity_id);
            const verdicts = await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
            left -= verdicts.filter((verdict) => verdict === "done").length;
            if (claims.length === 0) await sleep(2);
          }
        };
        try {
          await Promise.all(databases.map(work));
        } finally {
          await Promise.all(databases.map((database) => database.close()));
        }
        for (const [entity, positions] of order) {
          assert.deepEqual(
            positions,
            [...positions].sort((x, y) => x - y),
            entity,
          );
        }
        assert.equal([...order.values()].flat().length, rows.length);
      });
    }
  });
}

describe("wake-ups of PostgreSQL", () => {
  it("a waiting process hears of new rows, once for many", async () => {
    const { url, drop } = await freshPostgres();
    const [here, there] = [openDatabase(url), openDatabase(url)];
    for (const sql of schema("postgres")) await here.query(sql);
    const listener = new pg.Client(url);
    await listener.connect();
    let sent = 0;
    listener.on("notification", () => sent++);
    await listener.query("listen quarry");
    const woken = Promise.withResolvers<void>();
    let isListening = false;
    there.subscribe(steps.name, () => {
      if (isListening) woken.resolve();
      isListening = true;
    });
    // Listening begins with one look, which tells that it has begun.
    while (!isListening) await sleep(5);
    const startedAt = performance.now();
    const store = openQueue(here, steps);
    const rows = Array.from({ length: 300 }, (_unused, n) => ({ entity_type: "worker", entity_id: `n${n}` }));
    await Promise.all(rows.map((row) => store.enqueue([row])));
    await woken.promise;
    const pauses = Math.ceil((performance.now() - startedAt) / NOTIFY_EVERY_MS);
    assert.ok(sent >= 1 && sent <= pauses + 1, `${sent} notifications in ${pauses} pauses`);
    assert.equal((await openQueue(there, steps).claim({ worker: "w", limit: 1_000 })).length, rows.length);
    await listener.end();
    await here.close();
    await there.close();
    await drop();
  });
});
