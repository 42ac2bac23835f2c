import { createHash } from "node:crypto";
import type { Database, Session, Transaction } from "../database/database.ts";
import type { Dialect } from "../database/dialect.ts";
import { isQuarryError } from "../errors.ts";
import type { Phase } from "./queues.ts";

export const STEPS = ["ocr", "embed", "entities"] as const;
export type Step = (typeof STEPS)[number];

const PHASE_OF: Readonly<Record<Step, Phase>> = { ocr: "ocr", embed: "vector", entities: "graphrag" };

export interface StepOutput {
  readonly key: string;
  readonly step: Step;
  readonly documentId: string;
  readonly output: Uint8Array;
  /** What a model read and wrote for it, in its own count. */
  readonly tokens: number;
}

/**
 * What a step gave for an input. A retry, a crash, a second copy or an edited file repeats no step whose input did
 * not change. An entry goes with the document that first needed it, so that nothing of a deleted one stays.
 */
export interface StepCache {
  get(keys: readonly string[]): Promise<Map<string, Uint8Array>>;
  /** Also counts what the outputs cost, in the same transaction: what is kept is never paid for again. */
  put(outputs: readonly StepOutput[]): Promise<void>;
}

/** `version` names the model or engine: another one may give another output. */
export function stepKey(step: Step, version: string, input: string): string {
  return createHash("sha256").update(`${step}\0${version}\0${input}`).digest("hex");
}

export function openStepCache(database: Database): StepCache {
  const { dialect } = database;
  const entry = dialect.recordset("step_cache", 1);
  const find = {
    name: "step_cache.get",
    sql: `select cache_key, output from step_cache where ${dialect.isOneOf("cache_key", 1, "text")}`,
  };
  const values = [
    entry.column("cache_key", "plain"),
    entry.column("step", "plain"),
    entry.column("document_id", "plain"),
    entry.column("output", "blob"),
  ];
  // A document that was deleted meanwhile leaves no traces.
  const isThere = `exists (select 1 from documents as d where d.id = ${values[2]})`;
  const add = {
    name: "step_cache.put",
    sql: `insert into step_cache (cache_key, step, document_id, output) select ${values.join(", ")} from ${entry.from} where ${isThere} on conflict (cache_key) do nothing`,
  };
  return {
    get: async (keys) => {
      if (keys.length === 0) return new Map();
      const rows = await database.query(find, [dialect.keys([...new Set(keys)])]);
      return new Map(rows.map((row) => [String(row.cache_key), row.output as Uint8Array]));
    },
    put: async (outputs) => {
      if (outputs.length === 0) return;
      const rows = outputs.map(({ key, step, documentId, output }) => ({
        cache_key: key,
        step,
        document_id: documentId,
        output: dialect.blob(output),
      }));
      const keep = (session: Session) => session.query(add, [JSON.stringify(rows)]);
      const isFree = outputs.every(({ tokens }) => tokens === 0);
      const kept = isFree
        ? keep(database)
        : database.transaction(async (transaction) => {
            await keep(transaction);
            await countTokens(transaction, database.dialect, outputs);
          });
      await kept.catch((error) => {
        // Deleted between the look and the insert.
        if (!isQuarryError(error, "constraint_violated")) throw error;
      });
    },
  };
}

/** $1 tokens, $2 document. In the order of their keys, in which settlements lock them too. */
async function countTokens(
  transaction: Transaction,
  { mark }: Dialect,
  outputs: readonly StepOutput[],
): Promise<void> {
  const spent = new Map<string, { phase: Phase; documentId: string; tokens: number }>();
  for (const { step, documentId, tokens } of outputs) {
    const key = `${documentId} ${step}`;
    spent.set(key, { phase: PHASE_OF[step], documentId, tokens: (spent.get(key)?.tokens ?? 0) + tokens });
  }
  for (const key of [...spent.keys()].sort()) {
    const { phase, documentId, tokens } = spent.get(key)!;
    const column = `${phase}_tokens`;
    const sql = `update documents set ${column} = ${column} + ${mark(1)} where id = ${mark(2)}`;
    await transaction.query({ name: `documents.${column}`, sql }, [tokens, documentId]);
  }
}
