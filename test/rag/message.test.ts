import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { manualClock } from "../../src/index.ts";
import {
  jobMessageSchema,
  MESSAGE_BYTES_MAX,
  newJobId,
  newMessage,
  readMessage,
} from "../../src/rag/message.ts";

const LEAST = {
  job_id: "rag-policies_rag-1704882600-a7b2c3d4",
  rag_id: "policies_rag",
  source_path: "/app/data/sources/policies_rag/incoming/my_policy.pdf",
  source_type: "pdf",
  filename: "my_policy.pdf",
  submitted_at: "2025-01-10T20:15:30.123456Z",
};
const read = (value: unknown) => readMessage(typeof value === "string" ? value : JSON.stringify(value));

describe("messages of the RAG contract", () => {
  it("fills in what is optional", () => {
    assert.deepEqual(read(LEAST).job, {
      ...LEAST,
      submitted_by: "cli",
      options: { reindex: false, skip_validation: false, preserve_metadata: true },
      retry_count: 0,
      max_retries: 3,
    });
  });

  it("takes null for what a producer does not know", () => {
    const nulls = { submitted_by: null, options: null, retry_count: null, max_retries: null };
    assert.deepEqual(read({ ...LEAST, ...nulls }).job, read(LEAST).job);
    assert.equal(
      read({ ...LEAST, options: { reindex: true, skip_validation: null } }).job!.options.reindex,
      true,
    );
  });

  it("keeps fields that it does not know", () => {
    const job = read({ ...LEAST, trace: { id: 7 }, options: { reindex: true, later: 1 } }).job;
    assert.deepEqual((job as unknown as { trace: unknown }).trace, { id: 7 });
    assert.equal((job!.options as unknown as { later: number }).later, 1);
  });

  it("takes times as Python, JavaScript and others write them", () => {
    for (const submitted_at of [
      "2025-01-10T20:15:30.123456Z",
      "2025-01-10T20:15:30.123Z",
      "2025-01-10T20:15:30Z",
      "2025-01-10T20:15:30.123456",
      "2025-01-10T20:15:30.123456+00:00",
      "2025-01-10 20:15:30.123456789+0200",
    ])
      assert.equal(read({ ...LEAST, submitted_at }).problem, undefined, submitted_at);
  });

  it("says what is wrong with a malformed one", () => {
    const wrong: [unknown, RegExp][] = [
      ["", /not JSON/],
      ["{", /not JSON/],
      ["null", /no message/],
      ["[]", /no message/],
      ['"text"', /no message/],
      [{ ...LEAST, job_id: undefined }, /job_id/],
      [{ ...LEAST, job_id: 7 }, /job_id/],
      [{ ...LEAST, job_id: "a:b" }, /job_id/],
      [{ ...LEAST, job_id: "x".repeat(201) }, /job_id/],
      [{ ...LEAST, rag_id: "" }, /rag_id/],
      [{ ...LEAST, source_path: null }, /source_path/],
      [{ ...LEAST, submitted_at: "yesterday" }, /submitted_at/],
      [{ ...LEAST, options: { reindex: "yes" } }, /options\.reindex/],
      [{ ...LEAST, options: [] }, /options/],
      [{ ...LEAST, retry_count: -1 }, /retry_count/],
      [{ ...LEAST, max_retries: 1.5 }, /max_retries/],
      [{ ...LEAST, filename: "x".repeat(MESSAGE_BYTES_MAX) }, /bytes/],
    ];
    for (const [value, expected] of wrong) assert.match(read(value).problem ?? "", expected);
  });

  it("a complete message is read as it is, and what is wrong with one is found all the same", () => {
    const whole = read(LEAST).job!;
    assert.deepEqual(read({ ...whole, extra: 1 }).job, { ...whole, extra: 1 });
    for (const field of Object.keys(whole)) {
      for (const value of [7.5, true, [], "", "x".repeat(5_000), -1]) {
        const { job, problem } = read({ ...whole, [field]: value });
        const { success } = jobMessageSchema.safeParse({ ...whole, [field]: value });
        assert.equal(job !== undefined, success, `${field}: ${JSON.stringify(value)}`);
        assert.equal(problem === undefined, success);
      }
    }
  });

  it("leaves an unknown file type to whoever can move the file", () => {
    assert.equal(read({ ...LEAST, source_type: "xlsx" }).job!.source_type, "xlsx");
  });

  it("makes ids of the contract's format", () => {
    const clock = manualClock(1_704_882_600_999);
    assert.match(newJobId("policies_rag", clock), /^rag-policies_rag-1704882600-[0-9a-f]{8}$/);
    const many = Array.from({ length: 100_000 }, () => newJobId("a", clock));
    assert.equal(new Set(many).size, many.length, "two jobs of one second have the same id");
  });

  it("makes messages that it can read", () => {
    const { job_id: _id, submitted_at: _at, ...file } = LEAST;
    const message = newMessage({ ...file, options: { reindex: true } }, manualClock());
    assert.deepEqual(read(message).job, message);
  });
});
