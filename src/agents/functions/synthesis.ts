import { z } from "zod";
import { type Answer, citedAnswer, quotedAnswer, withMissing } from "../answer.ts";
import type { AgentWorker, Planner } from "../planners.ts";
import { synthesisPrompt } from "../prompts.ts";
import { type AgentFunction, defineFunction } from "../registry.ts";
import { sourcesOf } from "../sources.ts";
import { type AgentParts, byModelOr, type MeteredLlm } from "./parts.ts";

const UNCITED = "The model's answer named no source, so the passages themselves are quoted.";

/** What the workers found becomes an answer that says where it is from. */
export function synthesis(parts: AgentParts): AgentFunction {
  const { planners } = parts;
  return defineFunction({
    name: "execute_synthesis",
    entityType: "planner",
    payload: z.object({}),
    run: async (task) => {
      const planner = await planners.read(task.entityId);
      // Nobody wants the answer any more.
      if (planner.status === "FAILED") return undefined;
      const workers = await planners.workers(task.entityId);
      const made = await byModelOr(parts, task, {
        ask: (llm) => written(llm, planner, workers, task.signal),
        without: () => quotedAnswer(workers),
      });
      const { answer, citations, notes } = withMissing(made.value, workers);
      const warnings = workers.flatMap(({ result }) => result?.warnings ?? []);
      const told = new Set([...planner.notes, ...made.notes, ...warnings, ...notes]);
      return {
        also: async (transaction) => {
          const entity = { table: "planners", id: task.entityId } as const;
          const isWanted = await planners.complete(transaction, task.entityId);
          const found = isWanted && { answer, citations, notes: [...told] };
          await planners.change(transaction, entity, { ...found, tokens_used: made.tokens });
        },
      };
    },
  });
}

async function written(
  llm: MeteredLlm,
  { user_question: question, instruction }: Planner,
  workers: readonly AgentWorker[],
  signal: AbortSignal,
): Promise<Answer> {
  const sources = sourcesOf(workers);
  // There is nothing to ask about.
  if (sources.length === 0) return quotedAnswer(workers);
  const missing = workers.filter(({ status }) => status === "FAILED");
  const { text } = await llm.complete(synthesisPrompt({ question, instruction, sources, missing }), signal);
  const answer = citedAnswer(text, sources);
  if (answer) return answer;
  const quoted = quotedAnswer(workers);
  return { ...quoted, notes: [...quoted.notes, UNCITED] };
}
