import type { FunctionTaskStatus } from "../../src/agents/queue.ts";

export interface ModelTask {
  readonly id: string;
  readonly entity: number;
  readonly limit: number;
  status: FunctionTaskStatus;
  count: number;
  isDelayed: boolean;
  hasTurn: boolean;
  /** Rises when the task is taken from whoever held it. */
  holder: number;
}

export type ModelOutcome = "done" | "retry" | "retry later" | "failed" | "released";

const ALLOWED: Readonly<Record<FunctionTaskStatus, readonly FunctionTaskStatus[]>> = {
  PENDING: ["IN_PROGRESS"],
  IN_PROGRESS: ["COMPLETED", "FAILED", "PENDING"],
  FAILED: ["PENDING"],
  COMPLETED: [],
};

/** The rules of function tasks in plain code: what the tests hold every row of the database against, after every step. */
export class TaskModel {
  /** In the order they were created. */
  tasks: ModelTask[] = [];

  add(id: string, entity: number, limit: number): void {
    const task = {
      id,
      entity,
      limit,
      status: "PENDING",
      count: 0,
      isDelayed: false,
      hasTurn: false,
    } as const;
    this.tasks.push({ ...task, holder: 0 });
    this.#passTurns();
  }

  claim(limit: number): ModelTask[] {
    const ready = this.tasks.filter((task) => task.hasTurn && task.status === "PENDING" && !task.isDelayed);
    const taken = ready.slice(0, limit);
    for (const task of taken) {
      task.status = "IN_PROGRESS";
      task.holder++;
    }
    return taken;
  }

  settle(task: ModelTask, holder: number, outcome: ModelOutcome): boolean {
    if (!this.tasks.includes(task) || task.status !== "IN_PROGRESS" || task.holder !== holder) return false;
    if (outcome === "done") this.#end(task, "COMPLETED");
    else if (outcome === "released") task.status = "PENDING";
    else this.#fail(task, outcome);
    this.#passTurns();
    return true;
  }

  /** Whoever held it fell silent. */
  rescue(task: ModelTask): void {
    task.holder++;
    this.#fail(task, "retry");
    this.#passTurns();
  }

  retry(task: ModelTask): boolean {
    if (task.status !== "FAILED" && !task.isDelayed) return false;
    task.status = "PENDING";
    task.isDelayed = false;
    this.#passTurns();
    return true;
  }

  cancel(task: ModelTask): boolean {
    if (task.status !== "PENDING" && task.status !== "IN_PROGRESS") return false;
    this.tasks = this.tasks.filter((other) => other !== task);
    this.#passTurns();
    return true;
  }

  /** Somebody writes a status into the row; a sweep follows. */
  write(task: ModelTask, status: FunctionTaskStatus): boolean {
    if (status === task.status) return true;
    if (!ALLOWED[task.status].includes(status)) return false;
    if (status === "IN_PROGRESS" && !task.hasTurn) {
      const other = this.#turnOf(task.entity);
      if (other?.status === "IN_PROGRESS") return false;
      if (other) other.hasTurn = false;
      task.hasTurn = true;
    }
    if (status === "IN_PROGRESS") {
      task.holder++;
      task.isDelayed = false;
    }
    if (status === "COMPLETED" || status === "FAILED") task.hasTurn = false;
    task.status = status;
    this.#passTurns();
    return true;
  }

  #fail(task: ModelTask, outcome: "retry" | "retry later" | "failed"): void {
    const spent = task.count + 1;
    task.count = Math.min(spent, task.limit);
    if (outcome === "failed" || spent >= task.limit) this.#end(task, "FAILED");
    else {
      task.status = "PENDING";
      task.isDelayed = outcome === "retry later";
    }
  }

  #end(task: ModelTask, status: "COMPLETED" | "FAILED"): void {
    task.status = status;
    task.hasTurn = false;
  }

  #turnOf(entity: number): ModelTask | undefined {
    return this.tasks.find((task) => task.entity === entity && task.hasTurn);
  }

  /** To the oldest that could run, where nobody has it. */
  #passTurns(): void {
    for (const task of this.tasks)
      if (task.status === "PENDING" && !task.isDelayed && !this.#turnOf(task.entity)) task.hasTurn = true;
  }
}
