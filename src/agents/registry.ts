import type { z } from "zod";
import type { Transaction } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { problemOf } from "../problems.ts";
import type { EntityType } from "./queue.ts";

/** A step of an agent: what it is called, whom it works for, what it must be given, and what it does. */
export interface AgentFunction<Payload = unknown> {
  readonly name: string;
  readonly entityType: EntityType;
  /** What its payload must be; checked when a task is enqueued and again when it is run. */
  readonly payload: z.ZodType<Payload>;
  /** Throwing means: try again, up to the task's own limit. An error of code invalid_input or not_found fails at once. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement has nothing to add.
  run(task: FunctionTask<Payload>): Promise<FunctionResult | undefined | void>;
}

/** What a function is given. No other task of the entity runs meanwhile. */
export interface FunctionTask<Payload = unknown> {
  readonly taskId: string;
  readonly entityType: EntityType;
  readonly entityId: string;
  readonly payload: Payload;
  /** 1 for the first try. */
  readonly attempt: number;
  readonly attemptsMax: number;
  /** Aborts when the task was cancelled or lost, or the process stops. */
  readonly signal: AbortSignal;
}

/** What a function leaves behind, all of it in the transaction that completes its task, or nothing. */
export interface FunctionResult {
  /** Results, written into planners, workers or tables of one's own. */
  readonly also?: (transaction: Transaction) => Promise<void>;
  /** Tasks that follow; they may be for entities that `also` made. */
  readonly next?: readonly NewTask[];
}

export interface NewTask {
  readonly entity_type: EntityType;
  readonly entity_id: string;
  readonly function_name: string;
  readonly payload?: object | null | undefined;
  readonly max_retries?: number | undefined;
}

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.-]{0,99}$/;

/** Takes the payload's type from the schema. */
export function defineFunction<Payload>(declared: AgentFunction<Payload>): AgentFunction<Payload> {
  if (!NAME.test(declared.name))
    throw new QuarryError(
      "invalid_declaration",
      `${JSON.stringify(declared.name)} is not a function's name: give up to 100 letters, digits, _, . and -`,
    );
  return declared;
}

/** The functions that tasks may name. */
export class FunctionRegistry {
  readonly #functions = new Map<string, AgentFunction>();

  constructor(functions: readonly AgentFunction[] = []) {
    for (const declared of functions) this.register(declared);
  }

  get names(): readonly string[] {
    return [...this.#functions.keys()];
  }

  /** A name stands for one function: a second one is refused, or tasks would run what they were not meant for. */
  register(declared: AgentFunction): void {
    const { name } = defineFunction(declared);
    if (this.#functions.has(name))
      throw new QuarryError("invalid_declaration", `function ${name} is registered already`);
    this.#functions.set(name, declared);
  }

  find(name: string): AgentFunction | undefined {
    return this.#functions.get(name);
  }

  /** The function that a task names, and its payload as the function wants it. */
  resolve(task: Omit<NewTask, "entity_id" | "max_retries">): { run: AgentFunction; payload: unknown } {
    const run = this.find(task.function_name);
    if (!run)
      throw new QuarryError(
        "invalid_input",
        `function_name: ${JSON.stringify(task.function_name)} is not registered here; there are ${this.names.join(", ") || "none"}`,
      );
    if (run.entityType !== task.entity_type)
      throw new QuarryError(
        "invalid_input",
        `entity_type: ${run.name} is a function of a ${run.entityType}, not of a ${task.entity_type}`,
      );
    const parsed = run.payload.safeParse(task.payload ?? {});
    if (parsed.success) return { run, payload: parsed.data };
    const [issue] = parsed.error.issues;
    throw new QuarryError(
      "invalid_input",
      `${["payload", ...issue!.path].join(".")}: ${problemOf(issue!)} (what ${run.name} needs)`,
    );
  }
}
