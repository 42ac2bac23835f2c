import { z } from "zod";
import { completeAs } from "../../adapters/llm.ts";
import { isQuarryError, messageOf, QuarryError } from "../../errors.ts";
import type { Scope } from "../catalogue.ts";
import { catalogueQuery } from "../catalogue-questions.ts";
import { type FailedQuery, sqlPrompt } from "../prompts.ts";
import { type AgentFunction, defineFunction } from "../registry.ts";
import type { Table } from "../sql-table.ts";
import { type AgentParts, byModelOr, completed, type MeteredLlm, scopeOf } from "./parts.ts";

interface Wanted {
  readonly question: string;
  readonly scope: Scope;
  readonly signal: AbortSignal;
}

interface Read {
  readonly sql: string;
  readonly table: Table;
}

/** Asks the catalogue about a part of a question. */
export function sqlWorker(parts: AgentParts): AgentFunction {
  return defineFunction({
    name: "execute_sql_worker",
    entityType: "worker",
    payload: z.object({}),
    run: async (task) => {
      const worker = await parts.planners.worker(task.entityId);
      const scope = await scopeOf(parts, worker);
      const wanted = { question: worker.task, scope, signal: task.signal };
      const { value, tokens, notes } = await byModelOr(parts, task, {
        ask: (llm) => readWritten(parts, llm, wanted),
        without: (why) => readKnown(parts, wanted, why),
      });
      return completed(parts, task.entityId, {
        result: { kind: "table", ...value, warnings: notes },
        tokens,
      });
    },
  });
}

async function readKnown(
  { reader }: AgentParts,
  { question, scope, signal }: Wanted,
  why: string | undefined,
): Promise<Read> {
  const sql = catalogueQuery(question);
  if (sql !== undefined) return { sql, table: await reader.read(sql, scope, signal) };
  const advice = why ?? "set QUARRY_LLM to a model that can write one";
  throw new QuarryError("invalid_input", `there is no query for ${JSON.stringify(question)}: ${advice}`);
}

/** The model's query; one that is refused is told why, and asked for once more. */
async function readWritten(
  { reader, database }: AgentParts,
  llm: MeteredLlm,
  { question, scope, signal }: Wanted,
): Promise<Read> {
  let failed: FailedQuery | undefined;
  for (;;) {
    const { sql } = await completeAs(llm, sqlPrompt(question, database.dialect.name, failed), signal);
    try {
      return { sql, table: await reader.read(sql, scope, signal) };
    } catch (error) {
      if (!isQuarryError(error, "invalid_input", "timeout", "resource_exhausted")) throw error;
      if (failed)
        throw new QuarryError("invalid_input", `the model's query failed twice: ${messageOf(error)}`, {
          cause: error,
        });
      failed = { sql, problem: messageOf(error) };
    }
  }
}
