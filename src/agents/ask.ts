import { z } from "zod";
import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { isName, NAMES_ARE } from "../names.ts";
import { INSTRUCTION_LENGTH_MAX, QUESTION_LENGTH_MAX } from "./functions/planning.ts";
import { type Planner, type Planners, TENANT, type WorkerProgress } from "./planners.ts";
import { FUNCTION_QUEUE } from "./queue.ts";
import type { Tasks } from "./tasks.ts";

const name = z.string().refine(isName, NAMES_ARE);

/** What may be asked, and of what. */
export const questionSchema = z.strictObject({
  question: z.string().trim().min(1, "ask something").max(QUESTION_LENGTH_MAX),
  instruction: z
    .string()
    .trim()
    .max(INSTRUCTION_LENGTH_MAX)
    .default("")
    .describe("How to answer, for the model."),
  tenant: name.default(TENANT).describe("Whose documents."),
  collection: name.nullish().describe("Only this collection."),
});

export type Question = z.input<typeof questionSchema>;

/** A question, its workers and, once it is there, its answer. */
export interface Asked extends Planner {
  readonly workers: readonly WorkerProgress[];
  /** By the planner and its workers. */
  readonly tokens_total: number;
}

const LOOK_EVERY_MS = 150;

/** Questions, and what becomes of them. */
export class Asks {
  readonly #database: Database;
  readonly #planners: Planners;
  readonly #tasks: Tasks;

  constructor(parts: { database: Database; planners: Planners; tasks: Tasks }) {
    this.#database = parts.database;
    this.#planners = parts.planners;
    this.#tasks = parts.tasks;
  }

  /** Puts a question into line: whoever runs the lane of tasks answers it. Returns its id. */
  async start(given: Question): Promise<string> {
    const { question, instruction, tenant, collection = null } = checked(given);
    return this.#database.transaction(async (transaction) => {
      const id = await this.#planners.create(transaction, { question, instruction, tenant, collection });
      await this.#tasks.within(transaction).enqueue([
        {
          entity_type: "planner",
          entity_id: id,
          function_name: "execute_initial_planning",
          payload: { user_question: question, instruction },
        },
      ]);
      return id;
    });
  }

  async read(id: string): Promise<Asked> {
    const planner = await this.#planners.read(id);
    const workers = await this.#planners.progress(id);
    return {
      ...planner,
      workers,
      tokens_total: workers.reduce((sum, worker) => sum + worker.tokens_used, planner.tokens_used),
    };
  }

  /** As it is now, and again whenever something has changed, until it is answered, has failed, or the signal aborts. */
  async *follow(id: string, signal: AbortSignal): AsyncGenerator<Asked> {
    let last = "";
    let isWoken = false;
    while (!signal.aborted) {
      const asked = await this.read(id);
      // When its last worker failed, the database put the synthesis into line, which wakes no lane by itself.
      if (asked.phase === "synthesis" && !isWoken) this.#database.notify(FUNCTION_QUEUE);
      isWoken = asked.phase === "synthesis";
      const now = JSON.stringify(asked);
      if (now !== last) yield asked;
      if (isOver(asked)) return;
      last = now;
      await pause(LOOK_EVERY_MS, signal);
    }
  }

  /** Nobody wants the answer any more: what waits goes away, what runs is aborted. */
  async cancel(id: string): Promise<void> {
    const { dialect } = this.#database;
    // First, so that the end of its workers does not put the synthesis into line.
    await this.#database.query(
      `update planners set status = 'FAILED', phase = 'synthesis', error_message = 'cancelled', finished_at = ${dialect.now}, updated_at = ${dialect.now} where planner_id = ${dialect.mark(2)} and status in ('PENDING', 'IN_PROGRESS')`,
      [this.#database.now(), id],
    );
    const rows = await this.#database.query(
      `select task_id from task_queue where status in ('PENDING', 'IN_PROGRESS') and ((entity_type = 'planner' and entity_id = ${dialect.mark(1)}) or (entity_type = 'worker' and entity_id in (select worker_id from workers where planner_id = ${dialect.mark(1)})))`,
      [id],
    );
    // One that has ended since is too late to cancel, and what it leaves is for nobody.
    for (const { task_id } of rows) await this.#tasks.cancel(String(task_id)).catch(() => undefined);
  }
}

export function isOver({ status }: Pick<Asked, "status">): boolean {
  return status === "COMPLETED" || status === "FAILED";
}

function checked(given: Question): z.output<typeof questionSchema> {
  const parsed = questionSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new QuarryError("invalid_input", `${path.join(".") || "a question"}: ${message}`);
}
