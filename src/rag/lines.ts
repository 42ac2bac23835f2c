import { QuarryError } from "../errors.ts";
import type { JobLevel, SubmitOptions } from "./queue.ts";

/** A list in which jobs wait: the plain one (""), that of a priority, or that of a RAG. */
export interface Line {
  readonly name: string;
  readonly level: JobLevel;
}

/**
 * What a job of a list costs in turns. High goes before normal before low, but eight to one and no more: whoever
 * waits gets a share. Lists that are not named here, of RAGs and the plain one, take turns as equals.
 */
export const COSTS = { high: 1, low: 64 } as const;
export const NORMAL_COST = 8;

export function costOf(name: string): number {
  return name === "high" || name === "low" ? COSTS[name] : NORMAL_COST;
}

export function lineOf(ragId: string, { priority, own }: SubmitOptions = {}): Line {
  if (own && priority !== undefined) {
    throw new QuarryError(
      "invalid_input",
      "a job waits in the list of its RAG or in that of a priority: give one of the two",
    );
  }
  return lineNamed(own ? ragId : (priority ?? ""));
}

export function lineNamed(name: string): Line {
  return { name, level: name === "high" || name === "low" ? name : "normal" };
}
