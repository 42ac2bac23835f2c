import type { Table } from "./sql-table.ts";

/** A passage that was found for a part of a question. */
export interface FoundPassage {
  readonly document_id: string;
  readonly chunk_id: string;
  readonly filename: string;
  readonly title: string | null;
  readonly page_number: number;
  readonly content: string;
  /** The sentences of it that say most about the question. */
  readonly quote: string;
  /** From 0; what is below `RELEVANT` speaks of something else. */
  readonly relevance: number;
}

/** What a worker found out, and what could not be asked. */
export type WorkerResult = (
  | { readonly kind: "passages"; readonly passages: readonly FoundPassage[] }
  | { readonly kind: "table"; readonly sql: string; readonly table: Table }
) & { readonly warnings: readonly string[] };

/** What a mark such as [1] in an answer stands for. */
export type Citation =
  | {
      readonly number: number;
      readonly kind: "passage";
      readonly document_id: string;
      readonly chunk_id: string;
      readonly filename: string;
      readonly page_number: number;
      readonly quote: string;
    }
  | { readonly number: number; readonly kind: "catalogue"; readonly sql: string; readonly rows: number };
