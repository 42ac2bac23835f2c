import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type ErrorCode, QuarryError } from "../../src/index.ts";
import { RagError, type RagErrorCode } from "../../src/rag/errors.ts";
import { PLACES, type Place } from "./places.ts";
import { checkRetries, openTrial } from "./retrying.ts";

/** The contract's two lists, as what is thrown where they happen. */
const RECOVERABLE: Readonly<Record<string, readonly [ErrorCode, RagErrorCode]>> = {
  "Network timeout (Redis, Qdrant, embedding API)": ["timeout", "ERR_TIMEOUT"],
  "Temporary service unavailable (503)": ["model_unavailable", "ERR_SERVICE_UNAVAILABLE"],
  "Temporary service unavailable (429)": ["rate_limited", "ERR_SERVICE_UNAVAILABLE"],
  "Disk space issue (may be transient)": ["disk_full", "ERR_DISK_FULL"],
  "Out of memory (worker may recover)": ["resource_exhausted", "ERR_OUT_OF_MEMORY"],
};
const FATAL: Readonly<Record<string, readonly [object, RagErrorCode]>> = {
  "File not found": [{ file: "missing.txt" }, "ERR_FILE_NOT_FOUND"],
  "Unsupported file type": [{ source_type: "xlsx" }, "ERR_UNSUPPORTED_TYPE"],
  "Corrupted file (parse error)": [{ source_type: "pdf" }, "ERR_PDF_INVALID"],
  "Invalid RAG ID": [{ rag_id: "nobodys_rag" }, "ERR_RAG_UNKNOWN"],
  "Configuration error": [{}, "ERR_CONFIG_INVALID"],
};

for (const { name, open } of PLACES) {
  describe(`tries of a job on ${name}`, () => {
    let place: Place;
    before(async () => {
      place = await open();
    });
    after(() => place.close());
    beforeEach(() => place.reset());

    test("come after 5, 10 and 30 seconds, and each is logged with what went wrong", async () => {
      const error = new QuarryError("model_unavailable", "the embedding service answers 503");
      const logged = await checkRetries(place, error);
      const [{ job }] = logged as [{ job: string }];
      assert.deepEqual(
        logged,
        [1, 2, 3, 4].map((attempt) => ({
          ...{ level: "warn", job, rag: "policies_rag", file: "a.txt", attempt, error: error.message },
          ...{ error_type: "ServiceUnavailableError", error_code: "ERR_SERVICE_UNAVAILABLE" },
          msg: attempt < 4 ? "a job failed and is tried again" : "a job failed",
        })),
      );
    });

    for (const [what, [code, errorCode]] of Object.entries(RECOVERABLE)) {
      test(`recoverable: ${what}`, async () => {
        const trial = await openTrial(place, { error: new QuarryError(code, "not now") });
        await trial.work();
        const job = (await place.queue.read(trial.message.job_id))!;
        assert.deepEqual([job.status, job.retry_count, job.error_code], ["queued", 1, errorCode]);
        assert.deepEqual(await trial.files("incoming"), ["a.txt"]);
        await trial.close();
      });
    }

    for (const [what, [message, errorCode]] of Object.entries(FATAL)) {
      test(`not recoverable: ${what}`, async () => {
        const error = new RagError("ERR_CONFIG_INVALID", "the collection has an impossible name");
        const trial = await openTrial(place, { error, ...message });
        assert.equal(await trial.work(), 1);
        const job = (await place.queue.read(trial.message.job_id))!;
        assert.deepEqual([job.status, job.retry_count, job.error_code], ["failed", 1, errorCode]);
        place.clock.advance(3_600_000);
        assert.equal(await trial.work(), 0);
        assert.deepEqual(
          trial.logged.map(({ attempt, error_code, msg }) => [attempt, error_code, msg]),
          [[1, errorCode, "a job failed"]],
        );
        await trial.close();
      });
    }
  });
}
