import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { manualClock } from "../../src/clock.ts";
import { createLog, QuarryError } from "../../src/index.ts";
import { outcomeOf } from "../../src/outcomes.ts";
import { StoreOutages } from "../../src/queue/outage.ts";

describe("outages of what rows are kept in", () => {
  const open = () => {
    const clock = manualClock();
    const lines: { level: string; msg: string }[] = [];
    const log = createLog({ level: "debug", destination: { write: (line) => lines.push(JSON.parse(line)) } });
    const warnings = () => lines.splice(0).flatMap(({ level, msg }) => (level === "warn" ? [msg] : []));
    return { clock, lines, warnings, outages: new StoreOutages({ log, clock }) };
  };
  const away = new QuarryError("database_unavailable", "gone fishing");
  const AWAY = "the database is away: work waits until it is back";
  const BACK = "the database is back: work goes on";

  it("however many lanes meet it, it is said when it begins, once a minute, and when it is over", () => {
    const { clock, lines, warnings, outages } = open();
    for (const queue of ["a", "b", "a"]) outages.meet(away, { queue }, "claiming failed");
    assert.equal(lines.filter(({ msg }) => msg === "claiming failed").length, 3, "the details are kept");
    assert.deepEqual(warnings(), [AWAY]);
    clock.advance(59_999);
    outages.meet(away, { queue: "a" }, "claiming failed");
    assert.deepEqual(warnings(), []);
    clock.advance(1);
    outages.meet(away, { queue: "b" }, "claiming failed");
    assert.deepEqual(warnings(), [AWAY]);
    for (const queue of ["b", "a"]) outages.pass(queue);
    assert.deepEqual(warnings(), [BACK]);
  });

  it("one that comes and goes is said once a minute", () => {
    const { clock, warnings, outages } = open();
    for (let seconds = 0; seconds < 60; seconds++) {
      outages.meet(away, { queue: "a" }, "claiming failed");
      outages.pass("a");
      clock.advance(1_000);
    }
    assert.deepEqual(warnings(), [AWAY, BACK]);
    outages.meet(away, { queue: "a" }, "claiming failed");
    assert.deepEqual(warnings(), [AWAY]);
  });

  it("a queue that is kept elsewhere does not end it, and has an outage of its own", () => {
    const { warnings, outages } = open();
    outages.meet(away, { queue: "a" }, "claiming failed");
    outages.meet(new QuarryError("redis_unavailable", "gone too"), { queue: "rag" }, "claiming failed");
    warnings();
    outages.pass("rag");
    assert.deepEqual(warnings(), ["Redis is back: work goes on"]);
    outages.pass("a");
    assert.deepEqual(warnings(), [BACK]);
  });

  it("tasks that meet it wait without a word; what else they wait for, their lane says", () => {
    const waits = (error: QuarryError) => {
      const { kind, ...rest } = outcomeOf(error);
      return [kind, "reason" in rest ? rest.reason : undefined];
    };
    assert.deepEqual(waits(away), ["released", undefined]);
    assert.deepEqual(waits(new QuarryError("store_unavailable", "no bucket")), ["released", "no bucket"]);
  });

  it("every other error is said each time", () => {
    const { warnings, outages } = open();
    const wrong = new QuarryError("database_failed", "division by zero");
    for (let count = 0; count < 2; count++) outages.meet(wrong, { queue: "a" }, "claiming failed");
    assert.deepEqual(warnings(), ["claiming failed", "claiming failed"]);
  });
});
