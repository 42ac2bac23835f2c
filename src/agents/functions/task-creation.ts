import { z } from "zod";
import { QuarryError } from "../../errors.ts";
import { newAgentId } from "../entities.ts";
import { type AgentFunction, defineFunction } from "../registry.ts";
import type { AgentParts } from "./parts.ts";

/** A plan becomes workers, each with its first task. */
export function taskCreation({ planners, database }: AgentParts): AgentFunction {
  return defineFunction({
    name: "execute_task_creation",
    entityType: "planner",
    payload: z.object({}),
    run: async ({ entityId }) => {
      const { plan, status } = await planners.read(entityId);
      // Nobody wants the answer any more.
      if (status === "FAILED") return undefined;
      if (!plan || plan.length === 0)
        throw new QuarryError(
          "invalid_input",
          `planner ${entityId} has no plan yet: run execute_initial_planning`,
        );
      const hired = plan.map((step) => ({ ...step, id: newAgentId(database) }));
      return {
        also: async (transaction) => {
          await planners.hire(transaction, entityId, hired);
          await planners.expectWorkers(transaction, entityId);
        },
        next: hired.map(({ id }) => ({
          entity_type: "worker",
          entity_id: id,
          function_name: "worker_initialisation",
        })),
      };
    },
  });
}
