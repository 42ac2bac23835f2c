import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
  createJanitor,
  defineQueue,
  done,
  failed,
  isQuarryError,
  openQueue,
  type QueueDeclaration,
  type QueueStore,
  retry,
} from "../../../src/index.ts";
import { withPoints } from "../../support/points.ts";
import { type Fixture, steps, strides } from "../fixture.ts";

type Step = { entity_type: string; entity_id: string; position: number };

export function testGroups(fixture: () => Fixture): void {
  for (const queue of [steps, strides]) testGroupsOf(queue, fixture);
}

function testGroupsOf(queue: typeof steps, fixture: () => Fixture): void {
  describe(`one at a time per group: ${queue.name}`, () => {
    let store: QueueStore<Step>;
    beforeEach(async () => {
      await fixture().reset();
      store = openQueue(fixture().database, queue);
    });

    const enqueue = async (...entities: string[]) =>
      (
        await store.enqueue(
          entities.map((entity_id, position) => ({ entity_type: "worker", entity_id, position })),
        )
      ).map(({ key }) => key);
    const claim = (limit = 10) => store.claim({ worker: "w", limit });
    const claimed = async (limit = 10) =>
      (await claim(limit)).map(({ row }) => `${row.entity_id}${row.position}`);

    it("a claim takes one row of each group, the oldest", async () => {
      await enqueue("a", "a", "b", "a", "b", "c");
      assert.deepEqual(await claimed(), ["a0", "b2", "c5"]);
      assert.deepEqual(await claimed(), []);
    });

    it("what the database holds for one group is one, however it was written", async () => {
      const rows = [{ entity_id: 1 }, { entity_id: "1" }, { entity_id: "2" }];
      await store.enqueue(rows.map((row) => ({ entity_type: "worker", ...row })) as unknown as Step[]);
      assert.deepEqual(
        (await claim()).map(({ row }) => row.entity_id),
        ["1", "2"],
      );
    });

    it("the next row comes when the one before is removed as it completes", async () => {
      const { database } = fixture();
      const declaration = { ...(queue as QueueDeclaration), results: [], whenDone: "remove" } as const;
      store = openQueue<Step>(database, defineQueue<Step>(declaration as QueueDeclaration<Step>));
      await enqueue("a", "a", "b");
      const claims = await claim();
      await store.settle(claims.map((held) => ({ claim: held, outcome: done() })));
      assert.deepEqual(await claimed(), ["a1"]);
    });

    it("the next row of a group comes when the one before is done", async () => {
      await enqueue("a", "a", "b");
      const [a] = await claim();
      await store.settle([{ claim: a!, outcome: done() }]);
      assert.deepEqual(await claimed(), ["a1"]);
    });

    it("the next row comes when the one before failed for good", async () => {
      await enqueue("a", "a");
      const [a] = await claim();
      await store.settle([{ claim: a!, outcome: failed("x") }]);
      assert.deepEqual(await claimed(), ["a1"]);
    });

    it("a row that is to be retried keeps its place, also while it waits", async () => {
      await enqueue("a", "a");
      const [a] = await claim();
      await store.settle([{ claim: a!, outcome: retry("x", 5_000) }]);
      assert.deepEqual(await claimed(), []);
      fixture().clock.advance(5_000);
      await store.promoteDelayed();
      assert.deepEqual(await claimed(), ["a0"]);
    });

    it("a row that is enqueued for later holds nobody up, and gets its turn when it is due", async () => {
      await store.enqueue([{ entity_type: "worker", entity_id: "a", position: 0 }], { delayMs: 5_000 });
      await enqueue("a");
      const [now] = await claim();
      assert.equal(now!.row.position, 0);
      await store.settle([{ claim: now!, outcome: done() }]);
      assert.deepEqual(await claim(), []);
      fixture().clock.advance(5_000);
      assert.equal(await store.promoteDelayed(), 1);
      assert.equal((await claim()).length, 1);
    });

    it("a released or rescued row keeps its place", async () => {
      await enqueue("a", "a");
      await store.release(await claim());
      assert.deepEqual(await claimed(), ["a0"]);
      fixture().clock.advance(60_001);
      await store.rescueStale();
      assert.deepEqual(await claimed(), ["a0"]);
    });

    it("a row that killed its workers makes room for the next", async () => {
      await enqueue("a", "a");
      for (let i = 0; i < 3; i++) {
        assert.deepEqual(await claimed(), ["a0"]);
        fixture().clock.advance(60_001);
        await store.rescueStale();
      }
      assert.deepEqual(await claimed(), ["a1"]);
    });

    it("cancelling makes room, whether the row ran, waited first or waited behind", async () => {
      const keys = await enqueue("a", "a", "a", "a");
      await claim();
      await store.cancel([keys[0]!]);
      await store.cancel([keys[1]!]);
      await store.cancel([keys[3]!]);
      assert.deepEqual(await claimed(), ["a2"]);
    });

    it("a retried row queues up in its group again", async () => {
      const [first] = await enqueue("a", "a");
      const [a] = await claim();
      await store.settle([{ claim: a!, outcome: failed("x") }]);
      const [next] = await claim();
      await store.retry([first!]);
      assert.deepEqual(await claimed(), []);
      await store.settle([{ claim: next!, outcome: done() }]);
      assert.deepEqual(await claimed(), ["a0"]);
    });

    it("a row enqueued into a group that ran empty can be claimed", async () => {
      await enqueue("a");
      const [a] = await claim();
      await store.settle([{ claim: a!, outcome: done() }]);
      await enqueue("a");
      assert.equal((await claim()).length, 1);
    });

    it("a row whose group has nobody in line is written once, with its turn", async () => {
      const { database, points } = withPoints(fixture().database);
      const own = openQueue(database, queue);
      await own.enqueue([{ entity_type: "worker", entity_id: "a" }]);
      await own.enqueue(["b", "c"].map((entity_id) => ({ entity_type: "worker", entity_id })));
      assert.deepEqual([...points.counts], [[`${queue.name}.enqueue`, 2]]);
      assert.equal((await claim()).length, 3);
    });

    it("a row does not overtake those of its group that wait for a turn", async () => {
      await fixture().database.query(
        `insert into ${queue.table} (entity_type, entity_id, position, created_at) values ('worker', 'a', 7, '2020-01-01T00:00:00.000Z')`,
      );
      await enqueue("a");
      assert.deepEqual(await claimed(), ["a7"]);
    });

    it("the turn belongs to the engine", async () => {
      await assert.rejects(
        store.enqueue([{ entity_type: "worker", entity_id: "a", has_turn: true }]),
        (error) => isQuarryError(error, "invalid_input"),
      );
    });

    it("groups are told apart by all their columns", async () => {
      await store.enqueue([
        { entity_type: "worker", entity_id: "1" },
        { entity_type: "planner", entity_id: "1" },
      ]);
      assert.equal((await claim()).length, 2);
    });

    it("the database itself refuses a second turn in one group", async (test) => {
      if (fixture().database.dialect.isSerial && queue.group?.index) return test.skip("one writes at a time");
      await enqueue("a", "a");
      await assert.rejects(fixture().database.query(`update ${queue.table} set has_turn = true`), (error) =>
        isQuarryError(error, "constraint_violated"),
      );
    });

    it("rows written by hand get their turn from the janitor", async () => {
      const { database } = fixture();
      for (const entity of ["x", "x", "y"]) {
        await database.query(
          `insert into ${queue.table} (entity_type, entity_id, created_at) values ('worker', '${entity}', '2026-01-01T00:00:00Z')`,
        );
      }
      assert.deepEqual(await claim(), []);
      const sweep = await createJanitor({ database, queues: [queue] }).sweep();
      assert.equal(sweep.mended, 2);
      assert.equal((await claim()).length, 2);
    });

    it("many groups drain completely, each in order", async () => {
      const entities = Array.from({ length: 200 }, (_unused, n) => `e${n % 17}`);
      await enqueue(...entities);
      const seen = new Map<string, number[]>();
      for (let claims = await claim(7); claims.length > 0; claims = await claim(7)) {
        assert.equal(new Set(claims.map(({ row }) => row.entity_id)).size, claims.length);
        for (const { row } of claims)
          seen.set(row.entity_id, [...(seen.get(row.entity_id) ?? []), row.position]);
        await store.settle(claims.map((c) => ({ claim: c, outcome: done() })));
      }
      const positions = [...seen.values()];
      assert.equal(positions.flat().length, 200);
      for (const list of positions)
        assert.deepEqual(
          list,
          [...list].sort((a, b) => a - b),
        );
    });
  });
}
