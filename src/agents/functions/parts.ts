import type { Llm } from "../../adapters/llm.ts";
import type { Database } from "../../database/database.ts";
import { isQuarryError, messageOf, QuarryError } from "../../errors.ts";
import type { Scope } from "../catalogue.ts";
import { type AgentWorker, type Planners, TENANT } from "../planners.ts";
import { FUNCTION_QUEUE } from "../queue.ts";
import type { FunctionResult, FunctionTask } from "../registry.ts";
import type { FoundPassage, WorkerResult } from "../results.ts";
import type { CatalogueReader } from "../sql-reader.ts";

export interface Found {
  readonly passages: readonly FoundPassage[];
  /** What could not be asked. */
  readonly warnings: readonly string[];
}

/** What the six functions work with. */
export interface AgentParts {
  readonly database: Database;
  readonly planners: Planners;
  /** Undefined: plans are made by rule, and answers are quotations. */
  readonly llm: Llm | undefined;
  readonly retrieve: (question: string, scope: Scope, signal: AbortSignal) => Promise<Found>;
  readonly reader: CatalogueReader;
}

/** The model, and what one task has used of it. */
export class MeteredLlm implements Pick<Llm, "model" | "complete"> {
  readonly model: string;
  readonly #llm: Llm;
  tokens = 0;

  constructor(llm: Llm) {
    this.#llm = llm;
    this.model = llm.model;
  }

  async complete(...asked: Parameters<Llm["complete"]>): ReturnType<Llm["complete"]> {
    try {
      const completion = await this.#llm.complete(...asked);
      this.tokens += completion.tokens;
      return completion;
    } catch (error) {
      // What a service refuses it will refuse again: to us it is as good as away.
      if (!isQuarryError(error, "invalid_input")) throw error;
      throw new QuarryError("model_unavailable", error.message, { cause: error });
    }
  }
}

export interface Made<Value> {
  readonly value: Value;
  readonly tokens: number;
  readonly notes: readonly string[];
}

/**
 * What the model makes, or what can be made without it: when there is none, when it is away, and when the last try
 * with it failed. An answer by rule that says so is more to whoever waits than none.
 */
export async function byModelOr<Value>(
  { llm }: AgentParts,
  { signal, attempt, attemptsMax }: FunctionTask,
  how: {
    ask: (llm: MeteredLlm) => Promise<Value>;
    /** Is told why, when it was tried with the model. */
    without: (why?: string) => Value | Promise<Value>;
  },
): Promise<Made<Value>> {
  if (!llm) return { value: await how.without(), tokens: 0, notes: [] };
  const metered = new MeteredLlm(llm);
  try {
    return { value: await how.ask(metered), tokens: metered.tokens, notes: [] };
  } catch (error) {
    signal.throwIfAborted();
    const isLast = isQuarryError(error, "model_failed") && attempt >= attemptsMax;
    if (!isLast && !isQuarryError(error, "model_unavailable")) throw error;
    const why = messageOf(error);
    const note = `The model could not be used, so this was done without it: ${why}`;
    return { value: await how.without(why), tokens: metered.tokens, notes: [note] };
  }
}

/** Where a worker may look. */
export async function scopeOf({ planners }: AgentParts, { planner_id: id }: AgentWorker): Promise<Scope> {
  if (id === null) return { tenant: TENANT, collection: null };
  const { tenant, collection, status } = await planners.read(id);
  if (status === "FAILED")
    throw new QuarryError("invalid_input", "the question was cancelled, or has failed");
  return { tenant, collection };
}

/** The end of a worker that found something out. */
export function completed(
  { planners, database }: AgentParts,
  id: string,
  { result, tokens }: { result: WorkerResult; tokens: number },
): FunctionResult {
  const changes = { result, tokens_used: tokens, finished_at: true, status: "COMPLETED" };
  return {
    also: async (transaction) => {
      await planners.change(transaction, { table: "workers", id }, changes);
      // The last worker's end puts a task into line from inside the database, which wakes no lane by itself.
      transaction.afterCommit(() => database.notify(FUNCTION_QUEUE));
    },
  };
}
