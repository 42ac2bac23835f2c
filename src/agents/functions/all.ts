import type { AgentFunction } from "../registry.ts";
import type { AgentParts } from "./parts.ts";
import { initialPlanning } from "./planning.ts";
import { sqlWorker } from "./sql-worker.ts";
import { standardWorker } from "./standard-worker.ts";
import { synthesis } from "./synthesis.ts";
import { taskCreation } from "./task-creation.ts";
import { workerInitialisation } from "./worker-initialisation.ts";

/**
 * The steps of an answer, in their order. Each leaves its result and the tasks that follow in the transaction that
 * completes it; the last worker to end, however it ends, has the database put the synthesis into line.
 */
export function agentFunctions(parts: AgentParts): AgentFunction[] {
  return [
    initialPlanning(parts),
    taskCreation(parts),
    workerInitialisation(parts),
    standardWorker(parts),
    sqlWorker(parts),
    synthesis(parts),
  ];
}
