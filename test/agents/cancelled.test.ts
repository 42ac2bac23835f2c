import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type AskingDesk, openAskingDesk, passage } from "./asking.ts";

const QUESTION = { question: "Which stone is soft?", instruction: "", tenant: "default", collection: null };

/** A step may have begun before the question was cancelled, and end after it. */
for (const { name, open } of DATABASES) {
  describe(`a question that is cancelled under a step, on ${name}`, () => {
    let test: TestDatabase;
    let desk: AskingDesk;
    before(async () => {
      test = await open();
      desk = await openAskingDesk(test);
      desk.retrieve = async () => ({ passages: [passage("Talc is soft.")], warnings: [] });
    });
    after(async () => {
      await desk.close();
      await test.close();
    });

    const planned = async () => {
      const id = await desk.planners.create(test.database, QUESTION);
      await desk.complete("execute_initial_planning", id, {
        user_question: QUESTION.question,
        instruction: "",
      });
      await desk.query("delete from task_queue where status = 'COMPLETED'");
      return id;
    };
    const isCancelled = async (id: string) => {
      const { status, error_message: why, answer } = await desk.asks.read(id);
      assert.deepEqual([status, why, answer], ["FAILED", "cancelled", null]);
    };

    it("workers that are made all the same lead to no answer", async () => {
      const id = await planned();
      const made = await desk.run("execute_task_creation", id);
      await desk.query(
        `update planners set status = 'FAILED', phase = 'synthesis', error_message = 'cancelled' where planner_id = '${id}'`,
      );
      await test.database.transaction(async (transaction) => {
        await made!.also!(transaction);
        await desk.tasks.within(transaction).enqueue(made!.next!);
      });
      await desk.asks.cancel(id);
      const waiting = await desk.query("select function_name from task_queue where status = 'PENDING'");
      assert.deepEqual(
        waiting.filter((task) => task.function_name === "execute_synthesis"),
        [],
      );
      await isCancelled(id);
    });

    it("a plan and an answer that were being made are for nobody", async () => {
      const id = await planned();
      const answer = await desk.run("execute_synthesis", id);
      await desk.asks.cancel(id);
      await test.database.transaction(async (transaction) => answer?.also?.(transaction));
      await isCancelled(id);
    });

    it("no step of it begins any more: the model is asked nothing", async () => {
      const id = await planned();
      await desk.asks.cancel(id);
      desk.llm = {
        model: "nobody",
        complete: () => assert.fail("the model was asked"),
        close: async () => undefined,
      };
      const payload = { user_question: QUESTION.question, instruction: "" };
      assert.equal(await desk.run("execute_initial_planning", id, { payload }), undefined);
      assert.equal(await desk.run("execute_task_creation", id), undefined);
      assert.equal(await desk.run("execute_synthesis", id), undefined);
      desk.llm = undefined;
      await isCancelled(id);
    });
  });
}
