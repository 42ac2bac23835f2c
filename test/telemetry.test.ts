import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createWorker, defineLane, openDatabase, openQueue, openTelemetry } from "../src/index.ts";
import { schema, sms } from "./queue/fixture.ts";

describe("telemetry", () => {
  it("OpenTelemetry sees every store operation and every task as a span, failures as errors", async () => {
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    const telemetry = openTelemetry({ tracer: provider.getTracer("test") });
    const database = openDatabase(":memory:");
    for (const sql of schema("sqlite")) await database.query(sql);
    const store = openQueue(database, sms);
    await store.enqueue([{ recipient: "good" }, { recipient: "bad" }]);
    const lane = defineLane({
      queue: sms,
      handle: async ({ row }) => {
        if (row.recipient === "bad") throw new Error("no such number");
      },
    });
    const worker = createWorker({ database, lanes: [lane], telemetry }).start();
    while ((await store.countByStatus()).get("completed") !== 1)
      await new Promise((resolve) => setTimeout(resolve, 5));
    await worker.stop();
    await database.close();
    const spans = exporter.getFinishedSpans();
    const names = new Set(spans.map((span) => span.name));
    for (const name of ["quarry.store.claim", "quarry.store.settle", "quarry.task"])
      assert.ok(names.has(name), name);
    const tasks = spans.filter((span) => span.name === "quarry.task");
    assert.equal(tasks.length, 2);
    const failed = tasks.filter((span) => span.status.code === 2);
    assert.deepEqual(
      failed.map((span) => span.status.message),
      ["no such number"],
    );
    assert.ok(spans.every((span) => span.attributes["quarry.queue"] === "sms"));
  });
});
