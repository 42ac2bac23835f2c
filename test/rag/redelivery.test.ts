import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { JobMessage } from "../../src/rag/message.ts";
import type { JobReport, RagQueue } from "../../src/rag/queue.ts";
import { until } from "../documents/parts.ts";
import { type Desk, openDesk, TRANSPORTS } from "./desk.ts";

/** What a worker was about to note, or had just noted, when it died. */
interface Point {
  readonly name: string;
  readonly when: "before" | "after";
  readonly is: (fields: JobReport) => boolean;
}

const NOTES: Readonly<Record<string, Point["is"]>> = {
  "the document is noted": (fields) => fields.document_id !== undefined,
  "the move is intended": (fields) => fields.move_state?.startsWith("intended") === true,
  "the file is placed": (fields) => fields.move_state?.startsWith("placed") === true,
  "the file is moved": (fields) => fields.move_state === "moved",
  "the job is done": (fields) => fields.error_code === null,
};
const DEATHS: readonly Point[] = (["before", "after"] as const).flatMap((when) =>
  Object.entries(NOTES).map(([what, is]) => ({ name: `${when} ${what}`, when, is })),
);

for (const transport of TRANSPORTS) {
  describe(`jobs that are delivered again on ${transport.name}`, () => {
    let desk: Desk;
    beforeEach(async () => {
      desk = await openDesk(transport);
    });
    afterEach(() => desk.close());

    /** A crew that dies, without a word, when each of these jobs has come to its point. */
    const workUntilDeath = async (points: ReadonlyMap<string, Point>) => {
      const reached = new Map([...points.keys()].map((id) => [id, Promise.withResolvers<void>()]));
      const died = Promise.withResolvers<never>();
      died.promise.catch(() => undefined);
      const { queue } = desk;
      const report: RagQueue["report"] = async (ticket, fields) => {
        const point = points.get(String(ticket.key));
        if (!point?.is(fields)) return queue.report(ticket, fields);
        if (point.when === "after") await queue.report(ticket, fields);
        reached.get(String(ticket.key))!.resolve();
        return died.promise;
      };
      const crew = await desk.work({
        queue: { ...queue, store: queue.store, read: (id) => queue.read(id), report },
      });
      await Promise.all([...reached.values()].map(({ promise }) => promise));
      crew.worker.kill();
      died.reject(new Error("the worker is dead"));
    };

    const dieAt = ({ job_id: id }: JobMessage, point: Omit<Point, "name">) =>
      workUntilDeath(new Map([[id, { name: "", ...point }]]));

    test("whenever a worker dies, the file ends in one place and nothing is embedded twice", async () => {
      const points = new Map<string, Point>();
      for (const point of DEATHS) {
        await desk.write(`${point.name}.txt`, `The text of a worker that died ${point.name}.`);
        // On a busy machine a lease may run out once more.
        const message = desk.message(`${point.name}.txt`, { max_retries: 100 });
        points.set(message.job_id, point);
        await desk.queue.submit(message);
      }
      await workUntilDeath(points);
      await desk.work();
      for (const id of points.keys()) {
        const job = await desk.finished(id);
        assert.deepEqual([job.status, job.error], ["done", null], job.filename);
        assert.ok(job.retry_count >= 1, "a death costs a try");
      }
      const names = DEATHS.map(({ name }) => `${name}.txt`).toSorted();
      assert.deepEqual([await desk.files("incoming"), await desk.files("processed")], [[], names]);
      const { embedded } = desk.pipeline.calls;
      assert.equal(new Set(embedded).size, embedded.length);
      assert.equal((await desk.texts()).length, DEATHS.length);
    });

    test("a collection that was cleared for a job is not cleared for it again", async () => {
      const options = { reindex: true, skip_validation: false, preserve_metadata: true };
      await desk.write("one.txt", "Text of the job that cleared.");
      const message = desk.message("one.txt", { options });
      await desk.queue.submit(message);
      await dieAt(message, { when: "before", is: (fields) => fields.cleared_at !== undefined });
      await desk.work();
      await desk.write("two.txt", "Text that came meanwhile.");
      await desk.run(desk.message("two.txt"));
      assert.equal((await desk.finished(message.job_id)).status, "done");
      assert.deepEqual(await desk.texts(), ["Text of the job that cleared.", "Text that came meanwhile."]);
    });

    for (const when of ["before", "after"] as const) {
      test(`a worker that dies ${when} it begins to move a corrected file leaves no record of the failure`, async () => {
        await desk.write("a.txt", "");
        const message = desk.message("a.txt");
        const crew = await desk.work();
        assert.equal((await desk.run(message)).error_code, "ERR_FILE_EMPTY");
        await crew.stop();
        await desk.write("a.txt", "It is corrected.");
        await desk.queue.redrive({ ids: [message.job_id] });
        await dieAt(message, { when, is: NOTES["the move is intended"]! });
        await desk.work();
        assert.equal((await desk.finished(message.job_id)).status, "done");
        assert.deepEqual([await desk.files("failed"), await desk.files("processed")], [["a.txt"], ["a.txt"]]);
      });
    }

    test("the file of a job whose worker died with its last try is taken to failed", async () => {
      await desk.write("killer.txt", "Whoever reads this dies.");
      const message = desk.message("killer.txt", { max_retries: 1 });
      await desk.queue.submit(message);
      await dieAt(message, { when: "before", is: (fields) => fields.document_id !== undefined });
      await desk.work();
      const job = await desk.finished(message.job_id);
      assert.equal(job.status, "failed");
      await until(async () => (await desk.queue.read(message.job_id))!.move_state === "moved");
      // Two janitors may be at it.
      const isTidy = async () => (await desk.files("failed")).join() === "killer.txt,killer.txt.error.json";
      await until(isTidy);
      assert.deepEqual(await desk.files("incoming"), []);
      const record = await desk.errorRecord("killer.txt.error.json");
      assert.deepEqual([record.error_code, record.error], ["ERR_WORKER_DIED", job.error]);
    });

    test("a worker that stops gives its jobs back at no cost", async () => {
      desk.pipeline.calls.before = async (step, _text, signal) => {
        if (step !== "embed" || isOpen) return;
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      };
      let isOpen = false;
      await desk.write("a.txt", "Some text.");
      const message = desk.message("a.txt");
      await desk.queue.submit(message);
      const crew = await desk.work();
      await until(async () => (await desk.queue.read(message.job_id))!.chunks_created === 1);
      await crew.stop();
      const given = (await desk.queue.read(message.job_id))!;
      assert.deepEqual([given.status, given.retry_count], ["queued", 0]);
      isOpen = true;
      await desk.work();
      const job = await desk.finished(message.job_id);
      assert.deepEqual([job.status, job.retry_count, job.document_id], ["done", 0, given.document_id]);
    });

    test("a redelivered job leaves a newer file to the job that was submitted for it", async () => {
      for (const point of [
        { when: "after", is: (fields: JobReport) => fields.document_id !== undefined },
        { when: "after", is: (fields: JobReport) => fields.move_state?.startsWith("intended") === true },
      ] as const) {
        const path = await desk.write("a.txt", "Version one.");
        const first = desk.message("a.txt");
        await desk.queue.submit(first);
        await dieAt(first, point);
        await rm(path);
        await desk.write("a.txt", "Version two, which is longer.");
        const crew = await desk.work();
        assert.equal((await desk.finished(first.job_id)).status, "done");
        assert.deepEqual(await desk.files("incoming"), ["a.txt"]);
        assert.equal((await desk.run(desk.message("a.txt"))).status, "done");
        assert.deepEqual(await desk.texts(), ["Version two, which is longer."]);
        await crew.stop();
      }
    });

    test("a redelivered job does not bring an old version back over a newer one", async () => {
      await desk.write("a.txt", "Version one.");
      const first = desk.message("a.txt");
      await desk.queue.submit(first);
      await dieAt(first, { when: "after", is: (fields) => fields.document_id !== undefined });
      await desk.work();
      await desk.write("a.txt", "Version two.");
      await desk.run(desk.message("a.txt"));
      assert.equal((await desk.finished(first.job_id)).status, "done");
      assert.deepEqual(await desk.texts(), ["Version two."]);
    });
  });
}
