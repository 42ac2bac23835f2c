import { z } from "zod";
import { completeAs } from "../../adapters/llm.ts";
import { decompose } from "../plan.ts";
import { planningPrompt } from "../prompts.ts";
import { type AgentFunction, defineFunction } from "../registry.ts";
import { type AgentParts, byModelOr } from "./parts.ts";

export const QUESTION_LENGTH_MAX = 4_000;
export const INSTRUCTION_LENGTH_MAX = 4_000;

/** A question becomes a plan. */
export function initialPlanning(parts: AgentParts): AgentFunction {
  return defineFunction({
    name: "execute_initial_planning",
    entityType: "planner",
    payload: z.object({
      user_question: z.string().trim().min(1).max(QUESTION_LENGTH_MAX),
      instruction: z.string().trim().max(INSTRUCTION_LENGTH_MAX),
    }),
    run: async (task) => {
      const { planners, database } = parts;
      const { user_question: question, instruction } = task.payload;
      const entity = { table: "planners", id: task.entityId } as const;
      await planners.begin(database, entity);
      // Nobody wants the answer any more.
      if ((await planners.read(task.entityId)).status === "FAILED") return undefined;
      const { value, tokens, notes } = await byModelOr(parts, task, {
        ask: async (llm) => {
          const { workers } = await completeAs(llm, planningPrompt({ question, instruction }), task.signal);
          return workers;
        },
        without: () => decompose(question),
      });
      const changes = { plan: value, notes, tokens_used: tokens, user_question: question, instruction };
      return {
        also: (transaction) => planners.change(transaction, entity, changes),
        next: [{ entity_type: "planner", entity_id: task.entityId, function_name: "execute_task_creation" }],
      };
    },
  });
}
