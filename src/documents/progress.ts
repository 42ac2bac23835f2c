import type { Database, Row } from "../database/database.ts";
import { PHASES, type Phase, type TaskStatus } from "./queues.ts";
import { documentColumn, isOpen, STAGES, type Stage } from "./stages.ts";

export interface Counts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly processing: number;
}

export interface Progress {
  readonly documents: number;
  /** Documents that will still be split: how many pages they have is not known. */
  readonly unsplit: number;
  readonly ocr: Counts;
  readonly vector: Counts;
  readonly graphrag: Counts;
  /** Documents that workers can still do something for. */
  readonly open: number;
}

const SPLIT = STAGES.find(({ queue }) => queue === "split")!;

/** That a document `d` still has something to be done, up to and with a phase. */
export function openWork(upTo: Phase): string {
  const stages = STAGES.filter(({ phase }) => PHASES.indexOf(phase) <= PHASES.indexOf(upTo));
  // A finished document is known by its own row.
  return `(d.graphrag_index_status <> 'completed' and (${stages.map(isOpenAt).join(" or ")}))`;
}

function isOpenAt(stage: Stage): string {
  return `exists (select 1 from ${stage.table} as t where t.${documentColumn(stage)} = d.id and ${stage.concerns} and ${isOpen(stage)})`;
}

export async function hasOpenWork(database: Database, documentId: string, upTo: Phase): Promise<boolean> {
  const { dialect } = database;
  const sql = `select 1 as found from documents as d where ${dialect.isOneOf("d.id", 1, "uuid")} and ${openWork(upTo)}`;
  const rows = await database.query({ name: `documents.open.${upTo}`, sql }, [dialect.keys([documentId])]);
  return rows.length > 0;
}

/** How far these documents are, or all of them. */
export async function readProgress(database: Database, ids?: readonly string[]): Promise<Progress> {
  const { dialect } = database;
  const params = ids ? [dialect.keys(ids)] : [];
  const among = (column: string) => (ids ? dialect.isOneOf(column, 1, "uuid") : "true");
  const name = ids ? "some" : "all";
  const counted = (table: string, phase: Phase) =>
    database.query(
      {
        name: `documents.progress.${table}.${phase}.${name}`,
        // What failed and will be tried again counts as waiting.
        sql: `select case when ${phase}_status = 'failed' and ${phase}_retry_count < max_retries then 'pending' else cast(${phase}_status as text) end as status, count(*) as total from ${table} where ${among("document_id")} group by 1`,
      },
      params,
    );
  const [documents] = await database.query(
    {
      name: `documents.progress.${name}`,
      sql: `select count(*) as total, sum(case when ${isOpenAt(SPLIT)} then 1 else 0 end) as unsplit, sum(case when ${openWork("graphrag")} then 1 else 0 end) as open from documents as d where ${among("d.id")}`,
    },
    params,
  );
  return {
    documents: Number(documents!.total),
    unsplit: Number(documents!.unsplit ?? 0),
    open: Number(documents!.open ?? 0),
    ocr: countsOf(await counted("task_queue_page", "ocr")),
    vector: countsOf(await counted("task_queue_chunk", "vector")),
    graphrag: countsOf(await counted("task_queue_chunk", "graphrag")),
  };
}

function countsOf(rows: readonly Row[]): Counts {
  const of = (status: TaskStatus) => Number(rows.find((row) => row.status === status)?.total ?? 0);
  return {
    total: rows.reduce((sum, row) => sum + Number(row.total), 0),
    completed: of("completed"),
    failed: of("failed"),
    processing: of("processing"),
  };
}
