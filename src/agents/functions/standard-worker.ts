import { z } from "zod";
import { type AgentFunction, defineFunction } from "../registry.ts";
import { type AgentParts, completed, scopeOf } from "./parts.ts";

/** Searches the passages for a part of a question. */
export function standardWorker(parts: AgentParts): AgentFunction {
  const { planners, retrieve } = parts;
  return defineFunction({
    name: "execute_standard_worker",
    entityType: "worker",
    payload: z.object({}),
    run: async ({ entityId, signal }) => {
      const worker = await planners.worker(entityId);
      const { passages, warnings } = await retrieve(worker.task, await scopeOf(parts, worker), signal);
      return completed(parts, entityId, { result: { kind: "passages", passages, warnings }, tokens: 0 });
    },
  });
}
