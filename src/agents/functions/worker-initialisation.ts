import { z } from "zod";
import { catalogueQuery } from "../catalogue-questions.ts";
import type { WorkerKind } from "../planners.ts";
import { type AgentFunction, defineFunction } from "../registry.ts";
import type { AgentParts } from "./parts.ts";

const FUNCTIONS: Readonly<Record<WorkerKind, string>> = {
  standard: "execute_standard_worker",
  sql: "execute_sql_worker",
};

/** Decides how a worker goes about its part. Who cannot write a query for it searches. */
export function workerInitialisation(parts: AgentParts): AgentFunction {
  const { planners } = parts;
  return defineFunction({
    name: "worker_initialisation",
    entityType: "worker",
    payload: z.object({}),
    run: async ({ entityId }) => {
      const worker = await planners.worker(entityId);
      const canAsk = parts.llm !== undefined || catalogueQuery(worker.task) !== undefined;
      const kind = worker.kind === "sql" && canAsk ? "sql" : "standard";
      return {
        also: async (transaction) => {
          const entity = { table: "workers", id: entityId } as const;
          await planners.begin(transaction, entity);
          await planners.change(transaction, entity, { kind });
        },
        next: [{ entity_type: "worker", entity_id: entityId, function_name: FUNCTIONS[kind] }],
      };
    },
  });
}
