import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { openPostgres } from "../../src/database/postgres.ts";
import { type Claim, done, failed, type Outcome, openDatabase, released, retry } from "../../src/index.ts";
import { freshPostgres } from "../support/postgres.ts";
import { createFixture, type Fixture } from "./fixture.ts";
import { QueueModel } from "./model.ts";
import { Probe, SHAPES, type Shape } from "./suite/shapes.ts";

const OUTCOMES: readonly Outcome[] = [
  done(),
  retry("x", 0),
  retry("x", 5_000),
  failed("x"),
  released(),
  released(3_000),
];

type Command =
  | { do: "submit"; count: number; delayMs: number }
  | { do: "claim"; limit: number }
  | { do: "beat" | "crash"; pick: number }
  | { do: "settle"; picks: number[]; outcomes: number[] }
  | { do: "tick"; ms: number }
  | { do: "rescue" | "promote" }
  | { do: "retry" | "cancel"; pick: number };

const nat = (max: number) => fc.nat({ max });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      count: fc.integer({ min: 1, max: 4 }),
      delayMs: fc.constantFrom(0, 0, 0, 4_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("claim" as const), limit: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      picks: fc.array(nat(50), { minLength: 1, maxLength: 4 }),
      outcomes: fc.array(nat(OUTCOMES.length - 1), { minLength: 4, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("beat" as const, "crash" as const), pick: nat(50) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("tick" as const),
      ms: fc.constantFrom(1, 3_000, 5_000, 30_000, 60_001),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("rescue" as const, "promote" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("retry" as const, "cancel" as const), pick: nat(50) }),
  },
);

/** Runs commands against the database and the model and compares what each answers and what each holds. */
class Run {
  readonly probe: Probe;
  readonly model: QueueModel;
  /** Every claim ever made, so that commands can use stale ones too. */
  readonly claims: Claim<object>[] = [];

  constructor(probe: Probe) {
    this.probe = probe;
    this.model = new QueueModel(probe.queue);
    this.model.nowMs = probe.fixture.clock.now();
  }

  async execute(step: Command): Promise<void> {
    const { probe, model } = this;
    switch (step.do) {
      case "submit": {
        const rows = await probe.shape.rows(probe.fixture, step.count);
        const options = step.delayMs > 0 ? { delayMs: step.delayMs } : {};
        for (const { key } of await probe.store.enqueue(rows, options)) {
          model.submit(key, step.delayMs, (await probe.view(key)).token);
        }
        break;
      }
      case "claim": {
        const [real, expected] = [await probe.claim(step.limit), model.claim(step.limit)];
        const plain = (claim: Claim<object>) => [claim.key, claim.token, claim.attempt, claim.attemptsMax];
        assert.deepEqual(real.map(plain), expected.map(plain));
        this.claims.push(...real);
        break;
      }
      case "beat": {
        const claim = this.#claim(step.pick);
        if (claim) assert.equal((await probe.store.extend([claim])).size === 1, model.beat(claim));
        break;
      }
      case "crash":
        // The worker is gone: nobody settles or renews, only time passes.
        break;
      case "settle":
        await this.#settle(step);
        break;
      case "tick":
        probe.tick(step.ms);
        model.nowMs += step.ms;
        break;
      case "rescue":
        assert.equal((await probe.store.rescueStale()).length, model.rescue());
        break;
      case "promote":
        assert.equal(await probe.store.promoteDelayed(), model.promote());
        break;
      case "retry": {
        const key = this.#claim(step.pick)?.key;
        if (key !== undefined) assert.equal((await probe.store.retry([key])).length === 1, model.retry(key));
        break;
      }
      case "cancel": {
        const key = this.#claim(step.pick)?.key;
        if (key !== undefined) assert.equal((await probe.store.cancel([key])).get(key), model.cancel(key));
        break;
      }
      default:
        step satisfies never;
    }
    await this.#compare();
  }

  async #settle(step: { picks: number[]; outcomes: number[] }): Promise<void> {
    const byKey = new Map<unknown, { claim: Claim<object>; outcome: Outcome }>();
    for (const [index, pick] of step.picks.entries()) {
      const claim = this.#claim(pick);
      if (claim) byKey.set(claim.key, { claim, outcome: OUTCOMES[step.outcomes[index]!]! });
    }
    const settlements = [...byKey.values()];
    const verdicts = await this.probe.store.settle(settlements);
    const accepted = settlements.map(({ claim, outcome }) => this.model.settle(claim, outcome));
    assert.deepEqual(
      verdicts.map((verdict) => verdict !== "lost"),
      accepted,
    );
  }

  #claim(pick: number): Claim<object> | undefined {
    return this.claims.length === 0 ? undefined : this.claims.at(-1 - (pick % this.claims.length));
  }

  async #compare(): Promise<void> {
    const { columns, key } = this.probe.queue;
    const { rows } = await this.probe.store.list({ limit: 1_000, order: "oldest" });
    const real = new Map(
      rows.map(({ row }) => [
        row[key.column],
        [
          row[columns.status],
          row[columns.attempts],
          Number(row[columns.token]),
          row[columns.runAfter] !== null,
          row[columns.lease] !== null,
        ],
      ]),
    );
    const expected = new Map(
      [...this.model.rows.values()].map((row) => [
        row.key,
        [
          this.model.word(row),
          row.attempts,
          row.token,
          row.dueAt !== undefined,
          row.leaseEndsAt !== undefined,
        ],
      ]),
    );
    assert.deepEqual(real, expected);
    await this.#compareParents();
  }

  /** The four rules, counted out in plain code from the children that are there, level by level. */
  async #compareParents(): Promise<void> {
    const { queue, fixture } = this.probe;
    let child = { table: queue.table, status: queue.columns.status };
    for (const level of queue.rollUp) {
      const sql = `select p.id, p.${level.status} as status, c.${child.status} as child from ${level.table} p join ${child.table} c on c.${level.via} = p.id`;
      const children = Map.groupBy(await fixture.database.query(sql), (row) => row.id);
      for (const rows of children.values()) {
        const has = (status: string) => rows.some((row) => row.child === status);
        const expected = ["processing", "pending", "failed"].find(has) ?? "completed";
        assert.equal(rows[0]!.status, expected, `${level.table} ${rows[0]!.id}`);
      }
      child = level;
    }
  }
}

function testModel(name: string, runs: number, open: Parameters<typeof createFixture>[0]): void {
  describe(`the model on ${name}`, () => {
    let fixture: Fixture;
    before(async () => {
      fixture = await createFixture(open);
    });
    after(() => fixture.close());

    // Each row has a group of its own here; several rows in one group have tests of their own.
    for (const shape of SHAPES) {
      it(`${shape.queue.name} behaves like the model`, () => check(fixture, shape, runs));
    }
  });
}

async function check(fixture: Fixture, shape: Shape, runs: number): Promise<void> {
  // fast-check prints the seed and the shortest failing list of commands.
  const property = fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
    await fixture.reset();
    const run = new Run(new Probe(fixture, shape));
    for (const step of commands) await run.execute(step);
  });
  await fc.assert(property, { numRuns: runs });
}

testModel("SQLite", 150, async (clock) => ({ database: openDatabase(":memory:", { clock }) }));
testModel("PostgreSQL", 25, async (clock) => {
  const { url, drop } = await freshPostgres();
  const now = () => new Date(clock.now()).toISOString();
  return { database: openPostgres({ url, clock, now }), drop };
});
