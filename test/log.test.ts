import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLog } from "../src/index.ts";

describe("logs", () => {
  it("hide secrets by key and by shape, and stay one JSON value a line", () => {
    const lines: string[] = [];
    const log = createLog({
      level: "debug",
      destination: { write: (line: string) => void lines.push(line) },
    });
    const canary = "canary-5ecret";
    log.info({ password: canary, nested: { apiKey: canary, deeper: { token: canary } } }, "by key");
    log.warn(
      { url: `postgres://quarry:${canary}@db.example/quarry` },
      `cannot reach redis://:${canary}@host:6379/0`,
    );
    log.error({ error: `401 for Authorization: Bearer ${canary}` }, `OPENAI_API_KEY=${canary}`);
    assert.equal(lines.length, 3);
    assert.ok(!lines.join("").includes(canary), lines.join(""));
    const [first, second] = lines.map((line) => JSON.parse(line));
    assert.deepEqual([first.level, first.msg], ["info", "by key"]);
    assert.match(second.url, /^postgres:\/\/quarry:.*@db\.example\/quarry$/);
  });
});
