import type { AgentWorker } from "./planners.ts";
import { NO_ANSWER } from "./prompts.ts";
import type { Citation } from "./results.ts";
import { citationOf, relevantOf, type Source } from "./sources.ts";
import type { Table } from "./sql-table.ts";

export interface Answer {
  readonly answer: string;
  readonly citations: readonly Citation[];
  readonly notes: readonly string[];
}

export const NOTHING_FOUND = "Nothing in the documents answers this.";
const QUOTES_MAX = 3;
const ROWS_SHOWN_MAX = 50;

/** An answer without a model: the best passages of each part, in their own words. */
export function quotedAnswer(workers: readonly AgentWorker[]): Answer {
  const sources: Source[] = [];
  const parts = workers
    .filter(({ status }) => status === "COMPLETED")
    .map((worker) => ({ task: worker.task, lines: linesOf(worker, sources) }));
  const citations = sources.map((source, index) => citationOf(source, index + 1));
  if (parts.length <= 1) return { answer: parts[0]?.lines.join("\n") || NOTHING_FOUND, citations, notes: [] };
  if (parts.every(({ lines }) => lines.length === 0)) return { answer: NOTHING_FOUND, citations, notes: [] };
  const told = parts.map(({ task, lines }) =>
    [task, ...(lines.length > 0 ? lines : [NOTHING_FOUND])].join("\n"),
  );
  return { answer: told.join("\n\n"), citations, notes: [] };
}

/** Each line ends in the mark of its source, which is added to the sources unless it is among them. */
function linesOf({ result, task }: AgentWorker, sources: Source[]): string[] {
  switch (result?.kind) {
    case "passages":
      return relevantOf(result.passages)
        .slice(0, QUOTES_MAX)
        .map((passage) => {
          const isTold = sources.some(
            (known) => known.kind === "passage" && known.passage.quote === passage.quote,
          );
          const said = isTold ? "As quoted above." : `“${passage.quote}”`;
          return `${said} ${markOf(sources, { kind: "passage", passage })}`;
        });
    case "table": {
      const lines = tableLines(result.table);
      const { sql, table } = result;
      return [
        ...lines.slice(0, -1),
        `${lines.at(-1)} ${markOf(sources, { kind: "table", task, sql, table })}`,
      ];
    }
    default:
      return [];
  }
}

function markOf(sources: Source[], source: Source): string {
  const isSame = (known: Source) =>
    known.kind === "passage" &&
    source.kind === "passage" &&
    known.passage.chunk_id === source.passage.chunk_id &&
    known.passage.document_id === source.passage.document_id;
  const at = sources.findIndex(isSame);
  return `[${at >= 0 ? at + 1 : sources.push(source)}]`;
}

/** One value is told with its name, rows as lines of names and values. */
export function tableLines({ columns, rows, isCut }: Table): string[] {
  if (rows.length === 0) return ["None."];
  const shown = rows
    .slice(0, ROWS_SHOWN_MAX)
    .map((row) =>
      row
        .map((cell, index) =>
          index === 0 && row.length > 1 ? String(cell ?? "") : `${columns[index]}: ${cell ?? "–"}`,
        )
        .join(", "),
    );
  const isMore = isCut || rows.length > ROWS_SHOWN_MAX;
  return isMore ? [...shown, "… and more"] : shown;
}

const MARKS = /\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]/g;

/**
 * A model's answer, held to its sources: marks that stand for none are taken out and told, the others are numbered in
 * the order they appear. Undefined when no mark is left: an answer that names no source is none.
 */
export function citedAnswer(text: string, sources: readonly Source[]): Answer | undefined {
  if (text.replaceAll(/[\s".*]/g, "") === NO_ANSWER.replaceAll(" ", ""))
    return { answer: NOTHING_FOUND, citations: [], notes: [] };
  const numbers = new Map<number, number>();
  const unknown = new Set<number>();
  const answer = text
    .replaceAll(MARKS, (_, list: string) =>
      list
        .split(/[,;]/)
        .map(Number)
        .flatMap((given) => {
          if (!sources[given - 1]) {
            unknown.add(given);
            return [];
          }
          if (!numbers.has(given)) numbers.set(given, numbers.size + 1);
          return [`[${numbers.get(given)}]`];
        })
        .join(""),
    )
    .replaceAll(/ +([.,;:!?]|$)/gm, "$1");
  if (numbers.size === 0) return undefined;
  const citations = [...numbers].map(([given, number]) => citationOf(sources[given - 1]!, number));
  const notes = [...unknown].map(
    (given) => `The model cited a source [${given}] that there is not; the mark was removed.`,
  );
  return { answer, citations, notes };
}

/** What an answer goes without, said at its end. */
export function withMissing(answer: Answer, workers: readonly AgentWorker[]): Answer {
  const failed = workers.filter(({ status }) => status === "FAILED");
  if (failed.length === 0) return answer;
  const lines = failed.map(({ task }) => `Missing: ${task}`);
  const notes = failed.map(
    ({ task, error_message: why }) => `“${task}” was not found out: ${why ?? "it failed"}`,
  );
  const isAll = failed.length === workers.length;
  return {
    ...answer,
    answer: [...(isAll ? ["The question could not be looked up."] : [answer.answer, ""]), ...lines].join(
      "\n",
    ),
    notes: [...answer.notes, ...notes],
  };
}
