import { type Literal, literal, quoted } from "../database/dialect.ts";
import type { Gate, OrderTerm, Queue } from "./declaration.ts";

/**
 * The conditions that statements and indexes must write alike: a partial index serves a statement only when
 * both say the same thing in the same words.
 */
export interface Predicates {
  /** May be claimed now. */
  readonly ready: string;
  /** Unfinished and not running, whether its time has come or not. */
  readonly waiting: string;
  /** Waits for its `run_after`. */
  readonly delayed: string;
  /** Waits although its attempts are spent: the limit was lowered under it. */
  readonly stuck: string;
  readonly running: string;
  readonly failedForGood: string;
  readonly done: string;
  /** Of this queue at all. */
  readonly member: string;
  /** Could run if it had its group's turn: a delayed row, or one whose gate is shut, holds nobody up. */
  readonly behind: string;
}

export function predicatesOf(queue: Queue, alias = "t"): Predicates {
  const column = (name: string) => `${alias}.${quoted(name)}`;
  const { columns, statuses } = queue;
  const members = Object.entries(queue.only).map(([name, value]) => equals(column(name), value));
  const all = (...terms: string[]) => [...members, ...terms].join(" and ");

  const status = column(columns.status);
  const attemptsLeft = `${column(columns.attempts)} < ${attemptsMax(queue, alias)}`;
  const hasLeft = queue.attempts.again === "anew" ? [attemptsLeft] : [];
  const isWaiting = equals(status, [...new Set([statuses.pending, statuses.retrying])]);
  const open = [...new Set([statuses.pending, statuses.retrying])].filter((word) => word !== statuses.failed);
  const isDue = `${column(columns.runAfter)} is null`;
  const gates = queue.gate.map((gate) => gateTest(gate, column(gate.column)));
  const turns = queue.group ? [`${column(queue.group.turn)} = true`] : [];
  const isTerminal = statuses.retrying === statuses.failed ? [`not (${attemptsLeft})`] : [];

  return {
    ready: all(isWaiting, isDue, ...hasLeft, ...gates, ...turns),
    waiting: all(isWaiting, ...hasLeft),
    delayed: all(isWaiting, `${column(columns.runAfter)} is not null`),
    stuck: hasLeft.length > 0 ? all(equals(status, open), `not (${attemptsLeft})`) : "false",
    running: all(equals(status, statuses.running)),
    failedForGood: all(equals(status, statuses.failed), ...isTerminal),
    done: all(equals(status, statuses.done)),
    member: members.length > 0 ? members.join(" and ") : "true",
    behind: queue.group
      ? all(isWaiting, isDue, ...hasLeft, ...gates, `${column(queue.group.turn)} = false`)
      : "false",
  };
}

export function attemptsMax(queue: Queue, alias = "t"): string {
  const { max } = queue.attempts;
  return typeof max === "string" ? `${alias}.${quoted(max)}` : String(max);
}

export function orderOf(queue: Queue, alias = "t"): string[] {
  return orderTermsOf(queue, alias).map(({ value, way }) => value + way);
}

/** What rows are ordered by, and which way: "" or " desc". */
export function orderTermsOf(queue: Queue, alias = "t"): { value: string; way: string }[] {
  return [...queue.order, queue.key.column].map((term) => orderTerm(term, alias));
}

function orderTerm(term: OrderTerm, alias: string): { value: string; way: string } {
  if (typeof term === "string") return { value: `${alias}.${quoted(term)}`, way: "" };
  const column = `${alias}.${quoted(term.column)}`;
  if ("direction" in term) return { value: column, way: term.direction === "desc" ? " desc" : "" };
  const ranks = term.values.map((value, rank) => `when ${literal(value)} then ${rank}`);
  return { value: `(case ${column} ${ranks.join(" ")} else ${term.values.length} end)`, way: "" };
}

export function equals(expression: string, value: Literal | readonly Literal[]): string {
  if (value === null) return `${expression} is null`;
  if (!Array.isArray(value)) return `${expression} = ${literal(value as Literal)}`;
  if (value.length === 1) return equals(expression, value[0]);
  return `${expression} in (${value.map(literal).join(", ")})`;
}

function gateTest(gate: Gate, column: string): string {
  return "is" in gate ? equals(column, gate.is) : `${column} is not null`;
}
