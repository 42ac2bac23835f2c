import assert from "node:assert/strict";
import { type Claim, type Key, openQueue, type Queue, type QueueStore } from "../../../src/index.ts";
import { chunks, errands, type Fixture, mail, pageOcr, pageVector, sms, steps } from "../fixture.ts";

/** A queue of the fixture and how a test makes rows for it that can be claimed at once. */
export interface Shape {
  readonly queue: Queue;
  rows(fixture: Fixture, count: number): Promise<object[]>;
}

let entities = 0;

export const SHAPES: readonly Shape[] = [
  {
    queue: mail,
    rows: async (_fixture, count) => numbered(count, (n) => ({ recipient: `r${n}`, payload: { n } })),
  },
  {
    queue: sms,
    rows: async (_fixture, count) => numbered(count, (n) => ({ recipient: `r${n}`, payload: { n } })),
  },
  {
    queue: pageOcr,
    rows: async (fixture, count) => {
      const [row] = await fixture.database.query(
        "insert into documents (ocr_status) values ('pending') returning id",
      );
      return numbered(count, (n) => ({ document_id: row!.id, page_number: n }));
    },
  },
  {
    queue: pageVector,
    rows: async (fixture, count) => {
      const [row] = await fixture.database.query(
        "insert into documents (ocr_status) values ('completed') returning id",
      );
      return numbered(count, (n) => ({ document_id: row!.id, page_number: n, ocr_status: "completed" }));
    },
  },
  {
    queue: chunks,
    rows: async (fixture, count) => {
      const [book] = await fixture.database.query(
        "insert into books (status) values ('pending') returning id",
      );
      const [section] = await fixture.database.query(
        `insert into sections (book_id, status) values (${book!.id}, 'pending') returning id`,
      );
      return numbered(count, (n) => ({ section_id: section!.id, position: n }));
    },
  },
  {
    queue: steps,
    rows: async (_fixture, count) =>
      numbered(count, (n) => ({ entity_type: "worker", entity_id: `e${entities++}`, position: n })),
  },
  {
    queue: errands,
    rows: async (_fixture, count) =>
      numbered(count, (n) => ({ place: n % 2 === 0 ? "here" : "", position: n })),
  },
];

function numbered<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_unused, index) => make(index));
}

/** A row in the engine's own terms, whatever its columns are called. */
export interface View {
  readonly status: string;
  readonly attempts: number;
  readonly token: number;
  readonly error: string | null;
  readonly lease: string | null;
  readonly runAfter: string | null;
  readonly worker: string | null;
  readonly finishedAt: string | null;
  readonly row: Record<string, unknown>;
}

/** The words of a test: enqueue, claim and look, for one queue. */
export class Probe {
  readonly fixture: Fixture;
  readonly shape: Shape;
  readonly store: QueueStore<object>;

  constructor(fixture: Fixture, shape: Shape) {
    this.fixture = fixture;
    this.shape = shape;
    this.store = openQueue(fixture.database, shape.queue);
  }

  get queue(): Queue {
    return this.shape.queue;
  }

  async enqueue(count = 1): Promise<Key[]> {
    const rows = await this.shape.rows(this.fixture, count);
    return (await this.store.enqueue(rows)).map(({ key }) => key);
  }

  async claim(limit = 1, worker = "w1"): Promise<Claim<object>[]> {
    return this.store.claim({ worker, limit });
  }

  async claimOne(worker = "w1"): Promise<Claim<object>> {
    const [claim, ...rest] = await this.claim(1, worker);
    assert.ok(claim, "there was nothing to claim");
    assert.equal(rest.length, 0);
    return claim;
  }

  tick(ms: number): void {
    this.fixture.clock.advance(ms);
  }

  async view(key: Key): Promise<View> {
    const { columns } = this.queue;
    const { rows } = await this.store.list({ where: { [this.queue.key.column]: key } });
    const row = rows[0]?.row;
    assert.ok(row, `row ${key} is gone`);
    const at = (name: string | undefined) => (name === undefined ? null : row[name]);
    return {
      status: String(at(columns.status)),
      attempts: Number(at(columns.attempts)),
      token: Number(at(columns.token)),
      error: at(columns.error) as string | null,
      lease: at(columns.lease) as string | null,
      runAfter: at(columns.runAfter) as string | null,
      worker: at(columns.worker) as string | null,
      finishedAt: at(columns.finishedAt) as string | null,
      row,
    };
  }

  async exists(key: Key): Promise<boolean> {
    return (await this.store.list({ where: { [this.queue.key.column]: key } })).rows.length > 0;
  }

  /** What the attempts column says after `failures` failed tries and, if so, one that is running or succeeded. */
  attempts({ failures, isTrying }: { failures: number; isTrying: boolean }): number {
    return this.queue.attempts.count === "claims" && isTrying ? failures + 1 : failures;
  }
}
