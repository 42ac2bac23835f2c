import assert from "node:assert/strict";
import { it } from "node:test";
import type { Asked } from "../../src/agents/ask.ts";
import { eventsOf } from "../../src/http/ask-events.ts";
import { QuarryError } from "../../src/index.ts";

const asked = (status: Asked["status"]) => ({ status }) as Asked;

it("says that it is alive while nothing changes, and loses no change", async () => {
  const done = Promise.withResolvers<Asked>();
  const told: string[] = [];
  const ask = (onProgress: (asked: Asked) => void) => {
    onProgress(asked("PENDING"));
    return done.promise.then((answer) => {
      onProgress(answer);
      return answer;
    });
  };
  for await (const event of eventsOf(ask, 5)) {
    told.push(event);
    if (told.filter((event) => event.startsWith(":")).length === 2) done.resolve(asked("COMPLETED"));
  }
  assert.match(told[0]!, /^event: progress\ndata: {"status":"PENDING"}\n\n$/);
  assert.match(told.at(-1)!, /^event: answer\n/);
  assert.ok(told.slice(1, -1).every((event) => event === ": at it\n\n"));
});

it("an asking that breaks off is told as failed, without what is for the log alone", async () => {
  for (const [error, why] of [
    [new QuarryError("invalid_input", "ask something else"), /"ask something else"/],
    [new QuarryError("database_unavailable", "postgres://me:secret@host is away"), /try again/],
    [new Error("secret"), /server's log/],
  ] as const) {
    const told: string[] = [];
    const tell = async () => {
      for await (const event of eventsOf(() => Promise.reject(error))) told.push(event);
    };
    await assert.rejects(tell(), (thrown) => thrown === error);
    assert.equal(told.length, 1);
    assert.match(told[0]!, /^event: failed\ndata: {"status":"FAILED"/);
    assert.match(told[0]!, why);
    assert.doesNotMatch(told[0]!, /secret/);
  }
});
