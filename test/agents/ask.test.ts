import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { openOllamaLlm } from "../../src/adapters/llm/ollama.ts";
import type { Llm } from "../../src/adapters/llm.ts";
import type { Asked } from "../../src/agents/ask.ts";
import type { Step } from "../../src/agents/planners.ts";
import { pause } from "../../src/clock.ts";
import { type Crew, openDatabase, QuarryError } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type AskingDesk, openAskingDesk, passage } from "./asking.ts";
import { type GullibleModel, gullible, promptedFor } from "./gullible-model.ts";
import { until } from "./office.ts";

const SIX = [
  ...["execute_initial_planning", "execute_task_creation", "worker_initialisation"],
  ...["execute_standard_worker", "execute_sql_worker", "execute_synthesis"],
];

for (const { name, open } of DATABASES) {
  describe(`asking on ${name}`, () => {
    let test: TestDatabase;
    let desk: AskingDesk;
    let server: ModelServer;
    let llm: Llm;
    let model: Partial<GullibleModel>;
    const crews: Crew[] = [];
    const { signal } = new AbortController();

    before(async () => {
      test = await open();
      desk = await openAskingDesk(test);
    });
    after(async () => {
      await desk.close();
      await test.close();
    });
    beforeEach(async () => {
      model = {};
      server = await startModelServer({ chat: (asked) => gullible(model)(asked) });
      llm = openOllamaLlm({ host: server.url, model: "llama-test", timeoutMs: 60_000 });
      desk.llm = undefined;
      desk.retrieve = async (task) => ({ passages: [passage(`About ${task}`)], warnings: [] });
    });
    afterEach(async () => {
      for (const crew of crews.splice(0)) await crew.stop();
      await llm.close();
      await server.close();
    });

    const work = async () => void crews.push(await desk.work());
    const over = async (id: string): Promise<Asked> => {
      let last: Asked | undefined;
      for await (last of desk.asks.follow(id, signal));
      return last!;
    };
    const ask = async (question: string) => over(await desk.asks.start({ question }));
    const tasksOf = (id: string) =>
      desk.query(
        `select task_id, function_name, status, retry_count, created_at from task_queue where entity_id in (select worker_id from workers where planner_id = '${id}') or entity_id = '${id}' order by created_at`,
      );
    const countOf = async (id: string, functionName: string) =>
      (await tasksOf(id)).filter((task) => task.function_name === functionName).length;
    const parts = (...tasks: string[]) => ({
      workers: tasks.map((task): Step => ({ kind: "standard", task })),
    });

    it("every step is a row, each done once, and the answer says where it is from", async () => {
      await work();
      const { planner_id: id, ...asked } = await ask("What is Big Nell, and how many documents are there?");
      assert.equal(asked.status, "COMPLETED");
      assert.equal(
        asked.answer,
        "What is Big Nell\n“About What is Big Nell” [1]\n\nhow many documents are there?\ndocuments: 0 [2]",
      );
      assert.deepEqual(
        asked.citations.map(({ kind }) => kind),
        ["passage", "catalogue"],
      );
      const tasks = await tasksOf(id);
      assert.deepEqual(new Set(tasks.map((task) => task.function_name)), new Set(SIX));
      assert.equal(tasks.length, 7);
      assert.ok(tasks.every((task) => task.status === "COMPLETED" && task.retry_count === 0));
      assert.ok(asked.started_at! <= asked.finished_at!);
    });

    it("tokens of the planner and of its workers are kept", async () => {
      desk.llm = llm;
      model.plan = () => ({
        workers: [
          { kind: "sql", task: "How many?" },
          { kind: "standard", task: "Why?" },
        ],
      });
      await work();
      const { tokens_total, tokens_used, workers, answer } = await ask("Why, and how many?");
      assert.equal(answer, "So it is written [1].");
      assert.equal(tokens_total, server.answered.tokens);
      assert.equal(server.answered.requests, 3);
      assert.ok(workers[0]!.tokens_used > 0 && workers[1]!.tokens_used === 0);
      assert.equal(tokens_used + workers[0]!.tokens_used, tokens_total);
    });

    it("a question that nobody can ask is refused", async () => {
      for (const question of ["", "  ", "x".repeat(5_000)])
        await assert.rejects(desk.asks.start({ question }), { code: "invalid_input" });
      await assert.rejects(desk.asks.start({ question: "x", tenant: "-" }), { code: "invalid_input" });
      await assert.rejects(desk.asks.read("nobody"), { code: "not_found" });
    });

    it("a worker that failed for good leads to an answer that says what is missing", async () => {
      desk.llm = llm;
      model.plan = () => parts("soft stones", "hard stones");
      desk.retrieve = async (task) => {
        if (task === "hard stones")
          throw new QuarryError("invalid_input", "the index of hard stones is gone");
        return { passages: [passage("Talc is soft.")], warnings: [] };
      };
      await work();
      const { status, answer, notes, workers, planner_id: id } = await ask("Which stones are soft or hard?");
      assert.equal(status, "COMPLETED");
      assert.equal(answer, "So it is written [1].\n\nMissing: hard stones");
      assert.match(notes.join(), /the index of hard stones is gone/);
      assert.deepEqual(
        workers.map((worker) => worker.status),
        ["COMPLETED", "FAILED"],
      );
      assert.equal(await countOf(id, "execute_synthesis"), 1);
    });

    it("so does one whose tries are used up, and a question of which nothing came is answered too", async () => {
      desk.retrieve = async () => {
        throw new Error("the index is on fire");
      };
      const id = await desk.asks.start({ question: "Which stone is soft?" });
      await desk.query(`update task_queue set max_retries = 1 where entity_id = '${id}'`);
      await work();
      await until(async () => (await countOf(id, "execute_standard_worker")) > 0);
      await desk.query(
        `update task_queue set max_retries = 1 where function_name = 'execute_standard_worker' and status <> 'COMPLETED' and retry_count <= 1`,
      );
      const { status, answer, notes } = await over(id);
      assert.equal(status, "COMPLETED");
      assert.equal(answer, "The question could not be looked up.\nMissing: Which stone is soft?");
      assert.match(notes.join(), /on fire/);
    });

    it("a planner whose own step failed for good has failed, with the reason; put back into line it goes on", async () => {
      const id = await desk.asks.start({ question: "Which stone is soft?" });
      await desk.query(`update task_queue set function_name = 'execute_nothing' where entity_id = '${id}'`);
      await work();
      const { status, error_message: why } = await over(id);
      assert.equal(status, "FAILED");
      assert.match(why!, /execute_nothing/);
      const [task] = await tasksOf(id);
      await desk.query(
        `update task_queue set function_name = 'execute_initial_planning' where entity_id = '${id}'`,
      );
      await desk.tasks.retry(String(task!.task_id));
      assert.equal((await over(id)).status, "COMPLETED");
    });

    it("a worker that is put back into line is answered for anew", async () => {
      let isBroken = true;
      desk.retrieve = async () => {
        if (isBroken) throw new QuarryError("invalid_input", "not now");
        return { passages: [passage("Talc is soft.")], warnings: [] };
      };
      await work();
      const { planner_id: id, answer } = await ask("Which stone is soft?");
      assert.match(answer!, /Missing/);
      isBroken = false;
      const failed = (await tasksOf(id)).find((task) => task.status === "FAILED");
      await desk.tasks.retry(String(failed!.task_id));
      const again = await over(id);
      assert.equal(again.answer, "“Talc is soft.” [1]");
      assert.equal(await countOf(id, "execute_synthesis"), 2);
    });

    it("a worker whose task is cancelled has failed, and the rest is answered", async () => {
      desk.llm = llm;
      model.plan = () => parts("soft stones", "hard stones");
      const held = Promise.withResolvers<void>();
      desk.retrieve = async (task, _, aborted) => {
        if (task === "hard stones") {
          held.resolve();
          await once(aborted, "abort");
          aborted.throwIfAborted();
        }
        return { passages: [passage("Talc is soft.")], warnings: [] };
      };
      const id = await desk.asks.start({ question: "Which stones are there?" });
      await work();
      await held.promise;
      const [running] = await desk.query(
        `select task_id from task_queue where function_name = 'execute_standard_worker' and status = 'IN_PROGRESS' and entity_id in (select worker_id from workers where planner_id = '${id}' and task = 'hard stones')`,
      );
      assert.equal(await desk.tasks.cancel(String(running!.task_id)), "aborted");
      const { answer, notes } = await over(id);
      assert.match(answer!, /Missing: hard stones/);
      assert.match(notes.join(), /was cancelled/);
    });

    it("a question that is cancelled stops where it is, and no answer is put together", async () => {
      const held = Promise.withResolvers<void>();
      const aborted = Promise.withResolvers<void>();
      desk.retrieve = async (_, __, stopped) => {
        stopped.addEventListener("abort", () => aborted.resolve());
        held.resolve();
        await aborted.promise;
        throw new Error("aborted");
      };
      const id = await desk.asks.start({ question: "Which stone is soft?" });
      await work();
      await held.promise;
      await desk.asks.cancel(id);
      await aborted.promise;
      const { status, error_message: why, answer } = await over(id);
      assert.deepEqual([status, why, answer], ["FAILED", "cancelled", null]);
      assert.equal(await countOf(id, "execute_synthesis"), 0);
    });

    it("two workers that end at the same moment lead to one synthesis", async () => {
      const id = await desk.planners.create(test.database, {
        ...{ question: "Which?", instruction: "", tenant: "default", collection: null },
      });
      await desk.planners.change(
        test.database,
        { table: "planners", id },
        { plan: parts("one", "two").workers },
      );
      await desk.complete("execute_task_creation", id);
      const workers = await desk.planners.workers(id);
      const other = openDatabase(test.url);
      const [first, second] = workers.map(({ worker_id }) => ({ table: "workers" as const, id: worker_id }));
      const isFirstWritten = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const one = test.database.transaction(async (transaction) => {
        await desk.planners.change(transaction, first!, { status: "COMPLETED" });
        isFirstWritten.resolve();
        await mayCommit.promise;
      });
      await isFirstWritten.promise;
      // Neither can see that the other has ended: only the one who waits for the planner's row will.
      const two = other.transaction((transaction) =>
        desk.planners.change(transaction, second!, { status: "COMPLETED" }),
      );
      if (name === "PostgreSQL") await waitsForLock(test.url);
      else await pause(50);
      mayCommit.resolve();
      await Promise.all([one, two]);
      await other.close();
      assert.equal(await countOf(id, "execute_synthesis"), 1);
      assert.equal((await desk.planners.read(id)).phase, "synthesis");
    });

    it("many questions at once, answered by two processes' worth of lanes: one synthesis each", async () => {
      desk.llm = undefined;
      const ids = await Promise.all(
        Array.from({ length: 15 }, (_, n) =>
          desk.asks.start({ question: `What is stone ${n}, who found it and where is it?` }),
        ),
      );
      await work();
      await work();
      for (const id of ids) {
        const asked = await over(id);
        assert.equal(asked.status, "COMPLETED");
        assert.equal(asked.workers.length, 3);
        assert.equal(await countOf(id, "execute_synthesis"), 1);
      }
    });

    it("after a kill in the middle, no step is repeated whose result was kept", async () => {
      model.plan = () => ({
        workers: [
          { kind: "sql", task: "quick" },
          { kind: "sql", task: "slow" },
        ],
      });
      const calls: string[] = [];
      model.sql = (question) => {
        calls.push(question);
        return "select count(*) from documents";
      };
      let isHung = true;
      const slow = await startModelServer({
        chat: (asked) => gullible(model)(asked),
        misbehave: ({ body }) => {
          const messages = body.messages as { content: string }[];
          return isHung && messages.some(({ content }) => content === "Question: slow")
            ? { kind: "hang" }
            : undefined;
        },
      });
      const id = await desk.asks.start({ question: "Quick and slow?" });
      const child = spawn(
        process.execPath,
        [join(import.meta.dirname, "ask-worker.ts"), "--url", test.url, "--model", slow.url],
        { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, NODE_NO_WARNINGS: "1" } },
      );
      await until(async () => {
        const asked = await desk.asks.read(id);
        return asked.workers.some(({ status, task }) => task === "quick" && status === "COMPLETED");
      });
      await until(async () => slow.requests.some(({ inputs }) => inputs.includes("Question: slow")));
      child.kill("SIGKILL");
      await once(child, "exit");
      isHung = false;
      const resumed = openOllamaLlm({ host: slow.url, model: "llama-test", timeoutMs: 60_000 });
      desk.llm = resumed;
      await work();
      const { status, answer } = await over(id);
      await resumed.close();
      await slow.close();
      assert.deepEqual([status, answer], ["COMPLETED", "So it is written [1]."]);
      assert.deepEqual(calls, ["quick", "slow"]);
      const prompted = slow.requests.map(({ body }) =>
        promptedFor({ system: (body.messages as { content: string }[])[0]!.content }),
      );
      // The hung one was asked twice, and nothing else.
      assert.deepEqual(prompted, ["plan", "sql", "sql", "sql", "synthesis"]);
    });
  });
}

async function waitsForLock(url: string): Promise<void> {
  const watcher = openDatabase(url, { poolMax: 1 });
  await until(async () => {
    const [row] = await watcher.query(
      "select count(*) as waiting from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return Number(row!.waiting) > 0;
  });
  await watcher.close();
}
