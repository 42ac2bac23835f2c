import type { Database, Row, Session, Transaction } from "../database/database.ts";
import { literal } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { compileRollUp } from "../queue/roll-up.ts";
import { cancelTopic, openQueue } from "../queue/store.ts";
import type { DocumentQueues, Phase } from "./queues.ts";
import { documentColumn, isOpen, STAGES, type Stage } from "./stages.ts";

interface Parts {
  readonly database: Database;
  readonly queues: DocumentQueues;
}

export interface Cancelled {
  /** Tasks that will not be started. */
  readonly waiting: number;
  /** Tasks that were taken from their workers. */
  readonly running: number;
}

const STALE_PER_REMOVAL = 1_000;
const STEP_OF: Record<Phase, string> = { ocr: "ocr", vector: "embed", graphrag: "entities" };

/** Only what failed is tried again; what is done stays done. Returns how many tasks that were. */
export async function retryFailed(
  { database, queues }: Parts,
  documentId: string,
  options: { phase?: Phase | undefined } = {},
): Promise<number> {
  let retried = 0;
  for (const stage of STAGES) {
    if (options.phase !== undefined && stage.phase !== options.phase) continue;
    const where = { [documentColumn(stage)]: documentId };
    retried += await openQueue<object>(database, queues[stage.queue]).retryWhere({ status: "failed", where });
  }
  return retried;
}

/**
 * Does a phase again, and those after it, which were built on it. What they had written goes: chunks at once, their
 * entries in the stores as soon as the new ones are there.
 */
export async function redoPhase(parts: Parts, documentId: string, phase: Phase): Promise<void> {
  const { database, queues } = parts;
  await database.transaction(async (transaction) => {
    const run = (sql: string) => onDocument(parts, transaction, documentId, sql);
    await beSplitAgain(run, phase);
    if (phase === "graphrag") {
      const results = "entities_extracted = 0, relationships_extracted = 0";
      await run(`update task_queue_chunk set ${reset("graphrag")}, ${results} where document_id = $id`);
      await run(`update task_queue_page set ${reset("graphrag")} where document_id = $id`);
    } else {
      const phases =
        phase === "ocr" ? (["ocr", "vector", "graphrag"] as const) : (["vector", "graphrag"] as const);
      const columns = [...phases.map(reset), "is_chunked = false", "chunk_count = 0"].join(", ");
      // Pages first: a page that is being chunked at this moment is waited for, and its chunks are seen below.
      await run(`update task_queue_page set ${columns} where document_id = $id`);
      await dropChunks(parts, transaction, documentId);
    }
    // Also what a copy of the same file has left: otherwise nothing would be done again.
    const twins =
      "select d.id from documents as d join documents as it on it.content_hash = d.content_hash where it.id = $id";
    await run(`delete from step_cache where step = ${literal(STEP_OF[phase])} and document_id in (${twins})`);
    await followDocument(parts, transaction, documentId);
  });
  // A document that could not be split has no pages to start from.
  if (phase === "ocr") await openQueue(database, queues.split).retry([documentId]);
  announce(parts);
}

/** A document without pages, as another system may have left it, begins anew from its file. */
async function beSplitAgain(run: (sql: string) => Promise<Row[]>, phase: Phase): Promise<void> {
  const [document] = await run(
    "select d.original_path, d.total_pages from documents as d where d.id = $id and not exists (select 1 from task_queue_page as p where p.document_id = d.id)",
  );
  if (!document || document.total_pages === null) return;
  if (document.original_path === null || phase !== "ocr") {
    throw new QuarryError(
      "invalid_input",
      document.original_path === null
        ? "this document has neither pages nor its original file: ingest the file again"
        : "this document has no pages yet: redo it from ocr on",
    );
  }
  await run(
    `update documents set ${reset("ocr").replace("ocr_worker_id", "current_worker_id").replace("ocr_last_heartbeat", "last_heartbeat")}, total_pages = null where id = $id`,
  );
}

/**
 * Stops the work on a document: what waits is not started, what runs is taken from its worker, what is done stays
 * and can be searched. A retry goes on from there.
 */
export async function cancelWork(parts: Parts, documentId: string): Promise<Cancelled> {
  const cancelled = await parts.database.transaction(async (transaction) => {
    const total = { waiting: 0, running: 0 };
    const parents = new Map<Stage, unknown[]>();
    // From the chunks up, as the lanes lock them; the roll-ups come when all is written.
    for (const stage of STAGES.toReversed()) {
      const which = `t.${documentColumn(stage)} = $id and ${stage.concerns} and ${isOpen(stage)}`;
      const status = `t.${stage.phase}_status`;
      const rows = await onDocument(
        parts,
        transaction,
        documentId,
        `select ${status} = 'processing' as is_running, count(*) as total from ${stage.table} as t where ${which} group by 1`,
      );
      for (const row of rows) total[row.is_running ? "running" : "waiting"] += Number(row.total);
      if (rows.length > 0) parents.set(stage, await stop(parts, transaction, documentId, stage, which));
    }
    for (const [stage, keys] of parents) await follow(parts, transaction, stage, keys);
    return total;
  });
  announce(parts);
  return cancelled;
}

async function stop(
  parts: Parts,
  transaction: Transaction,
  documentId: string,
  stage: Stage,
  which: string,
): Promise<unknown[]> {
  const { phase } = stage;
  const parent = parts.queues[stage.queue].rollUp[0]?.via;
  const set = [
    `${phase}_status = 'failed'`,
    `${phase}_retry_count = max_retries`,
    `${phase}_error = 'cancelled; a retry goes on from here'`,
    `${phase}_lease_token = ${phase}_lease_token + 1`,
    `${phase}_run_after = null`,
    stage.table === "documents" ? "last_heartbeat = null" : `${phase}_last_heartbeat = null`,
  ];
  const sql = `update ${stage.table} as t set ${set.join(", ")} where ${which} returning ${parent ?? "id"} as parent`;
  const rows = await onDocument(parts, transaction, documentId, sql);
  return rows.map((row) => row.parent);
}

/** Chunks go at once. What they left in the stores is named in removals, which wait for the new chunks. */
async function dropChunks(parts: Parts, transaction: Transaction, documentId: string): Promise<void> {
  const gone = await onDocument(
    parts,
    transaction,
    documentId,
    "delete from task_queue_chunk where document_id = $id returning id, chunk_id",
  );
  const removals: Row[] = [];
  for (let start = 0; start < gone.length; start += STALE_PER_REMOVAL) {
    const some = gone.slice(start, start + STALE_PER_REMOVAL);
    removals.push({
      document_id: documentId,
      kind: "chunks",
      chunk_ids: [...new Set(some.map((row) => row.chunk_id))],
      chunk_keys: some.map((row) => row.id),
    });
  }
  if (removals.length > 0)
    await openQueue(parts.database, parts.queues.removals).within(transaction).enqueue(removals);
}

async function followDocument(parts: Parts, session: Session, documentId: string): Promise<void> {
  const pages = await onDocument(
    parts,
    session,
    documentId,
    "select id from task_queue_page where document_id = $id and chunk_count > 0",
  );
  for (const stage of STAGES) {
    if (stage.table === "task_queue_chunk")
      await follow(
        parts,
        session,
        stage,
        pages.map((row) => row.id),
      );
    const hasPages = stage.table === "task_queue_page";
    if (hasPages && (await pagesExist(parts, session, documentId)))
      await follow(parts, session, stage, [documentId]);
  }
}

async function pagesExist(parts: Parts, session: Session, documentId: string): Promise<boolean> {
  const sql = "select 1 as found from task_queue_page where document_id = $id limit 1";
  return (await onDocument(parts, session, documentId, sql)).length > 0;
}

async function follow(
  { database, queues }: Parts,
  session: Session,
  stage: Stage,
  parents: readonly unknown[],
): Promise<void> {
  await compileRollUp(queues[stage.queue], database.dialect, database.now)?.follow(session, parents);
}

/** Everything a claim writes in a phase goes back to how it was before the first one; old claims are void. */
function reset(phase: Phase): string {
  return [
    `${phase}_status = 'pending'`,
    `${phase}_worker_id = null`,
    `${phase}_started_at = null`,
    `${phase}_completed_at = null`,
    `${phase}_error = null`,
    `${phase}_retry_count = 0`,
    `${phase}_last_heartbeat = null`,
    `${phase}_run_after = null`,
    `${phase}_lease_token = ${phase}_lease_token + 1`,
  ].join(", ");
}

/** Runs SQL whose only parameter, `$id`, is the document. */
function onDocument({ database }: Parts, session: Session, documentId: string, sql: string): Promise<Row[]> {
  const mark = database.dialect.name === "postgres" ? "$1::uuid" : "?1";
  return session.query(sql.replaceAll("$id", mark), [documentId]);
}

/** Workers look whether they still hold what they hold, and for what there is to do now. */
function announce({ database, queues }: Parts): void {
  for (const { queue } of STAGES) {
    database.notify(queues[queue].name);
    database.notify(cancelTopic(queues[queue]));
  }
}
