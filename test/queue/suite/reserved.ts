import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { defineQueue, openQueue, type QueueDeclaration } from "../../../src/index.ts";
import { errands, type Fixture, steps } from "../fixture.ts";

export function testReserved(fixture: () => Fixture): void {
  describe("rows that only some may take", () => {
    beforeEach(() => fixture().reset());

    it("are taken by them, with those that are anybody's, in the queue's order; others never touch them", async () => {
      const { database } = fixture();
      const store = openQueue(database, errands);
      await store.enqueue([
        { place: "there", priority: 9, position: 0 },
        { place: "", priority: 1, position: 1 },
        { place: "here", priority: 2, position: 2 },
        { place: "", priority: 3, position: 3 },
        { place: "there", priority: 0, position: 4 },
        { place: "here", priority: 0, position: 5 },
      ]);
      const positions = async (limit: number) =>
        (await store.claim({ worker: "w", limit })).map(({ row }) => row.position);
      assert.deepEqual(await positions(2), [3, 2]);
      assert.deepEqual(await positions(10), [1, 5]);
      assert.deepEqual(await positions(10), []);
      const left = await database.query(
        "select position, lease_token, worker_id from errands where place = 'there' order by position",
      );
      assert.deepEqual(
        left.map((row) => [Number(row.position), row.worker_id]),
        [
          [0, null],
          [4, null],
        ],
      );
    });

    it("are everybody's again when they are given on", async () => {
      const { database } = fixture();
      const store = openQueue(database, errands);
      const [enqueued] = await store.enqueue([{ place: "there" }]);
      assert.deepEqual(await store.claim({ worker: "w", limit: 1 }), []);
      await database.query(`update errands set place = '' where id = ${enqueued!.key}`);
      assert.equal((await store.claim({ worker: "w", limit: 1 })).length, 1);
    });

    it("need a name, and go with no groups", () => {
      const declared = (queue: object, reserved: { column: string; for: string }) =>
        defineQueue({ ...(queue as QueueDeclaration), reserved });
      assert.throws(() => declared(errands, { column: "place", for: "" }), { code: "invalid_declaration" });
      assert.throws(() => declared(steps, { column: "note", for: "here" }), { code: "invalid_declaration" });
    });
  });
}
