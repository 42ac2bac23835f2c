import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { openOllamaLlm } from "../../src/adapters/llm/ollama.ts";
import type { Llm } from "../../src/adapters/llm.ts";
import { NOTHING_FOUND } from "../../src/agents/answer.ts";
import type { Step } from "../../src/agents/planners.ts";
import type { NewTask } from "../../src/agents/registry.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import type { ChatRequest } from "../support/model-chat.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type AskingDesk, openAskingDesk, passage } from "./asking.ts";
import { type GullibleModel, gullible, promptedFor } from "./gullible-model.ts";
import { shelve } from "./shelf.ts";

const QUESTION = { question: "Which stone is soft?", instruction: "", tenant: "default", collection: null };
const PAYLOAD = { user_question: QUESTION.question, instruction: "" };

for (const { name, open } of DATABASES) {
  describe(`the six functions on ${name}`, () => {
    let test: TestDatabase;
    let desk: AskingDesk;
    let server: ModelServer;
    let llm: Llm;
    let model: Partial<GullibleModel>;

    let tokensBefore: number;

    before(async () => {
      server = await startModelServer({ chat: (asked) => gullible(model)(asked) });
      llm = openOllamaLlm({ host: server.url, model: "llama-test", timeoutMs: 60_000, outageMsMax: 1 });
      test = await open();
      desk = await openAskingDesk(test);
      await shelve(test.database, [{ filename: "talc.md", pages: [["Talc is soft."]] }]);
    });
    after(async () => {
      await llm.close();
      await desk.close();
      await test.close();
      await server.close();
    });
    beforeEach(() => {
      desk.llm = undefined;
      model = {};
      server.forget();
      tokensBefore = server.answered.tokens;
    });
    const tokens = () => server.answered.tokens - tokensBefore;

    const planner = (more = {}) => desk.planners.create(test.database, { ...QUESTION, ...more });
    const planned = async (steps: readonly Step[]) => {
      const id = await planner();
      await desk.planners.change(test.database, { table: "planners", id }, { plan: steps });
      await desk.complete("execute_task_creation", id);
      return { id, workers: await desk.planners.workers(id) };
    };
    const step = (task: string, kind: Step["kind"] = "standard"): Step => ({ kind, task });
    const nextOf = (next: readonly NewTask[] | undefined) => next?.map((task) => task.function_name);

    describe("execute_initial_planning", () => {
      it("needs a question and an instruction", async () => {
        const task = {
          entity_type: "planner" as const,
          entity_id: await planner(),
          function_name: "execute_initial_planning",
        };
        for (const payload of [
          null,
          {},
          { user_question: "x" },
          { instruction: "" },
          { ...PAYLOAD, user_question: " " },
        ])
          await assert.rejects(desk.tasks.enqueue([{ ...task, payload }]), { code: "invalid_input" });
        assert.equal((await desk.tasks.enqueue([{ ...task, payload: PAYLOAD }])).length, 1);
      });

      it("without a model makes the plan by rule", async () => {
        const id = await planner();
        const payload = { ...PAYLOAD, user_question: "What is Big Nell and who built it?" };
        const result = await desk.complete("execute_initial_planning", id, payload);
        assert.deepEqual(nextOf(result?.next), ["execute_task_creation"]);
        const { plan, status, tokens_used, started_at } = await desk.planners.read(id);
        assert.deepEqual(plan, [step("What is Big Nell"), step("who built it (Big Nell)?")]);
        assert.deepEqual([status, tokens_used], ["IN_PROGRESS", 0]);
        assert.ok(started_at);
      });

      it("with a model takes its plan, and counts what it cost", async () => {
        desk.llm = llm;
        const workers = [step("Which stones are soft?"), step("How many documents are there?", "sql")];
        model.plan = () => ({ workers });
        const id = await planner();
        await desk.complete("execute_initial_planning", id, PAYLOAD);
        const { plan, tokens_used } = await desk.planners.read(id);
        assert.deepEqual(plan, workers);
        assert.equal(tokens_used, tokens());
      });

      it("a plan of too many parts is sent back once", async () => {
        desk.llm = llm;
        const plans = [Array(7).fill(step("x")), [step("Which stones are soft?")]];
        model.plan = () => ({ workers: plans.shift() });
        const id = await planner();
        await desk.complete("execute_initial_planning", id, PAYLOAD);
        assert.equal((await desk.planners.read(id)).plan?.length, 1);
        assert.equal(server.requests.length, 2);
      });

      it("a model that is away, or fails to the last, is done without, and that is told", async () => {
        desk.llm = llm;
        const id = await planner();
        server.misbehave({ kind: "status", status: 401 });
        await desk.complete("execute_initial_planning", id, PAYLOAD);
        const { plan, notes } = await desk.planners.read(id);
        assert.deepEqual(plan, [step(QUESTION.question)]);
        assert.match(notes[0]!, /done without it.*401/);

        server.misbehave({ kind: "status", status: 500 }, { kind: "status", status: 500 });
        const run = (attempt: number) =>
          desk.run("execute_initial_planning", id, { payload: PAYLOAD, attempt, attemptsMax: 3 });
        await assert.rejects(run(1), { code: "model_failed" });
        assert.deepEqual(nextOf((await run(3))?.next), ["execute_task_creation"]);
      });
    });

    describe("execute_task_creation", () => {
      it("makes a worker for each part, in their order, and each worker's first task", async () => {
        const { id, workers } = await planned([step("first"), step("second", "sql"), step("third")]);
        assert.deepEqual(
          workers.map(({ task, kind, status }) => [task, kind, status]),
          [
            ["first", "standard", "PENDING"],
            ["second", "sql", "PENDING"],
            ["third", "standard", "PENDING"],
          ],
        );
        assert.equal((await desk.planners.read(id)).phase, "working");
        const { tasks } = await desk.tasks.list({ function_name: "worker_initialisation" });
        assert.deepEqual(
          tasks.map((task) => task.entity_id).toSorted(),
          workers.map((worker) => worker.worker_id).toSorted(),
        );
      });

      it("without a plan fails for good", async () => {
        await assert.rejects(desk.run("execute_task_creation", await planner()), { code: "invalid_input" });
      });
    });

    describe("worker_initialisation", () => {
      it("sends each worker its way; who has no query and no model searches", async () => {
        const { workers } = await planned([
          step("Which stone is soft?"),
          step("How many documents are there?", "sql"),
          step("What share of the pages is about slate?", "sql"),
        ]);
        const ways: unknown[] = [];
        for (const { worker_id: id } of workers)
          ways.push(nextOf((await desk.complete("worker_initialisation", id))?.next));
        assert.deepEqual(ways, [
          ["execute_standard_worker"],
          ["execute_sql_worker"],
          ["execute_standard_worker"],
        ]);
        const started = await desk.planners.worker(workers[2]!.worker_id);
        assert.deepEqual([started.kind, started.status], ["standard", "IN_PROGRESS"]);
        desk.llm = llm;
        assert.deepEqual(nextOf((await desk.run("worker_initialisation", workers[2]!.worker_id))?.next), [
          "execute_standard_worker",
        ]);
      });
    });

    describe("execute_standard_worker", () => {
      it("searches for its part where the question may look, and keeps what it found", async () => {
        const id = await planner({ tenant: "acme", collection: "stones" });
        await desk.planners.change(test.database, { table: "planners", id }, { plan: [step("soft stones")] });
        await desk.complete("execute_task_creation", id);
        const [worker] = await desk.planners.workers(id);
        const asked: unknown[] = [];
        const found = passage("Talc is soft.");
        desk.retrieve = async (...all) => {
          asked.push(...all.slice(0, 2));
          return { passages: [found], warnings: ["vector search is not available"] };
        };
        await desk.complete("execute_standard_worker", worker!.worker_id);
        assert.deepEqual(asked, ["soft stones", { tenant: "acme", collection: "stones" }]);
        const { status, result, finished_at } = await desk.planners.worker(worker!.worker_id);
        assert.deepEqual(
          [status, result],
          [
            "COMPLETED",
            { kind: "passages", passages: [found], warnings: ["vector search is not available"] },
          ],
        );
        assert.ok(finished_at);
      });
    });

    describe("execute_sql_worker", () => {
      const asked = async (task: string) => (await planned([step(task, "sql")])).workers[0]!.worker_id;
      const run = async (id: string) => {
        await desk.complete("execute_sql_worker", id);
        return desk.planners.worker(id);
      };

      it("without a model asks what the catalogue is known to be asked", async () => {
        const { result } = await run(await asked("How many documents are there?"));
        assert.ok(result?.kind === "table");
        assert.deepEqual(result.table.rows, [[1]]);
        await assert.rejects(desk.run("execute_sql_worker", await asked("How old is talc?")), {
          code: "invalid_input",
          message: /QUARRY_LLM/,
        });
      });

      it("with a model runs the query that it writes, and counts what it cost", async () => {
        desk.llm = llm;
        model.sql = () => "select filename from documents where lower(filename) like 'talc%'";
        const { result, tokens_used } = await run(await asked("Which files begin with talc?"));
        assert.ok(result?.kind === "table");
        assert.deepEqual(result.table, { columns: ["filename"], rows: [["talc.md"]], isCut: false });
        assert.equal(tokens_used, tokens());
      });

      it("a query that is refused is told why, once; the reason is quoted", async () => {
        desk.llm = llm;
        const reasons: string[] = [];
        const queries = ["select file_name from documents", "select filename from documents"];
        model.sql = (_, { messages }) => {
          if (messages.length > 1) reasons.push(messages.at(-1)!.content);
          return queries.shift()!;
        };
        const { result } = await run(await asked("Which files are there?"));
        assert.ok(result?.kind === "table");
        assert.deepEqual(result.table.rows, [["talc.md"]]);
        assert.match(reasons.join(), /<<<(\w+)\n.*file_name.*\n\1>>>/s);
      });

      it("one that is refused twice has failed for good", async () => {
        desk.llm = llm;
        model.sql = () => "drop table documents";
        await assert.rejects(desk.run("execute_sql_worker", await asked("Which files are there?")), {
          code: "invalid_input",
          message: /failed twice.*only SELECT/,
        });
        assert.equal(server.requests.length, 2);
        assert.equal((await desk.query("select * from documents")).length, 1);
      });
    });

    describe("execute_synthesis", () => {
      const talc = passage("Talc is the softest stone.", { filename: "talc.md", page_number: 3 });
      const found = new Map([
        [
          "soft",
          [
            talc,
            passage("Chalk is soft too.", { relevance: 0.9 }),
            passage("Cake is sweet.", { relevance: 0.1 }),
          ],
        ],
        ["hard", [passage("Diamond is hard.", { filename: "gems.md" }), talc]],
      ]);
      const finished = async (...tasks: string[]) => {
        const { id, workers } = await planned(tasks.map((task) => step(task)));
        desk.retrieve = async (task) => ({
          passages: found.get(task) ?? [passage("Noise.", { relevance: 0.1 })],
          warnings: [],
        });
        for (const { worker_id } of workers) await desk.complete("execute_standard_worker", worker_id);
        return id;
      };
      const answered = async (id: string) => {
        await desk.complete("execute_synthesis", id);
        return desk.planners.read(id);
      };

      it("without a model quotes what speaks of the question, with document and page, and no noise", async () => {
        const { answer, citations, status, notes } = await answered(await finished("soft"));
        assert.equal(answer, "“Talc is the softest stone.” [1]\n“Chalk is soft too.” [2]");
        assert.deepEqual(
          citations.map(
            (citation) =>
              citation.kind === "passage" && [citation.number, citation.filename, citation.page_number],
          ),
          [
            [1, "talc.md", 3],
            [2, "stones.md", 1],
          ],
        );
        assert.deepEqual([status, notes], ["COMPLETED", []]);
      });

      it("says so when nothing does", async () => {
        const { answer, citations } = await answered(await finished("sweet"));
        assert.deepEqual([answer, citations], [NOTHING_FOUND, []]);
      });

      it("parts of a question are answered one after the other, and a passage is cited under one number", async () => {
        const { answer, citations } = await answered(await finished("soft", "sweet", "hard"));
        assert.equal(
          answer,
          `soft\n“Talc is the softest stone.” [1]\n“Chalk is soft too.” [2]\n\nsweet\n${NOTHING_FOUND}\n\nhard\n“Diamond is hard.” [3]\nAs quoted above. [1]`,
        );
        assert.equal(citations.length, 3);
      });

      it("with a model takes its answer, with the marks it has sources for, and counts what it cost", async () => {
        desk.llm = llm;
        model.synthesis = () => "Talc is soft [3][9]. Chalk too [1, 2, 77].";
        const { answer, citations, notes, tokens_used } = await answered(await finished("soft"));
        assert.equal(answer, "Talc is soft [1]. Chalk too [2][3].");
        assert.deepEqual(
          citations.map(({ number }) => number),
          [1, 2, 3],
        );
        assert.ok(citations[1]?.kind === "passage" && citations[1].filename === "talc.md");
        assert.match(notes.join(), /\[9\].*\[77\]/);
        assert.equal(tokens_used, tokens());
      });

      it("an answer that names no source is replaced by quotations, and that is told", async () => {
        desk.llm = llm;
        for (const uncited of ["Talc, of course.", "Talc [12]."]) {
          model.synthesis = () => uncited;
          const { answer, notes } = await answered(await finished("soft"));
          assert.match(answer!, /^“Talc is the softest stone.” \[1\]/);
          assert.match(notes.join(), /named no source/);
        }
      });

      it("a model that finds no answer in the sources may say so", async () => {
        desk.llm = llm;
        model.synthesis = () => "NO ANSWER.";
        assert.equal((await answered(await finished("soft"))).answer, NOTHING_FOUND);
      });

      it("is not asked when there is nothing to ask about", async () => {
        desk.llm = llm;
        found.set("empty", []);
        assert.equal((await answered(await finished("empty"))).answer, NOTHING_FOUND);
        assert.equal(server.requests.length, 0);
      });

      it("the model is told which parts are missing, and the answer says so whatever it does", async () => {
        desk.llm = llm;
        const prompts: ChatRequest[] = [];
        model.synthesis = (_, asked) => {
          prompts.push(asked);
          return "Talc [1].";
        };
        const id = await finished("soft", "hard");
        await desk.query(
          `update workers set status = 'FAILED', error_message = 'the index is away', result = null where task = 'hard'`,
        );
        const { answer, notes } = await answered(id);
        assert.equal(promptedFor(prompts[0]!), "synthesis");
        assert.match(prompts[0]!.messages[0]!.content, /could not be looked up.*\n- hard/);
        assert.equal(answer, "Talc [1].\n\nMissing: hard");
        assert.match(notes.join(), /“hard” was not found out: the index is away/);
      });
    });
  });
}
