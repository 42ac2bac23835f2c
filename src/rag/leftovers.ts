import type { Clock } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { altered, type LaneStore } from "../queue/lane-store.ts";
import { type ErrorFields, errorFields, RAG_ERROR_CODES, RagError } from "./errors.ts";
import { putIntoFailed } from "./failed-files.ts";
import { finishMove, fromStatus, type Move, takenBy, toReport } from "./moves.ts";
import type { JobStatus, RagPayload, RagQueue } from "./queue.ts";
import type { Rags } from "./settings.ts";

interface Parts {
  readonly database: Database;
  readonly queue: RagQueue;
  readonly rags: Rags;
  readonly clock: Clock;
  readonly log: Log;
}

const AT_ONCE_MAX = 100;

/** A store whose janitor also takes away the files of jobs that failed without a worker to do it. */
export function alsoTidying(parts: Parts): LaneStore<RagPayload> {
  const { store } = parts.queue;
  return altered(store, {
    repair: async (options) => (await store.repair(options)) + (await tidyFailed(parts)),
  });
}

/** A worker that dies with a job's last try leaves its file in incoming. Returns how many were taken away. */
export async function tidyFailed(parts: Parts): Promise<number> {
  const sql = `select job_id from rag_jobs where status = 'failed' and coalesce(move_state, '') <> 'moved' order by finished_at, job_id limit ${AT_ONCE_MAX}`;
  const rows = await parts.database.query({ name: "rag.leftovers", sql });
  let tidied = 0;
  for (const { job_id: id } of rows) {
    const status = await parts.queue.read(String(id));
    // It may have been redriven meanwhile.
    if (status?.status !== "failed") continue;
    try {
      await tidy(parts, status);
      tidied++;
    } catch (error) {
      parts.log.warn({ job: id, error: messageOf(error) }, "the file of a failed job stays where it is");
    }
  }
  return tidied;
}

async function tidy({ database, rags, clock }: Parts, status: JobStatus): Promise<void> {
  let noted = status.move_state;
  /** Nobody holds the job, so the state that was last seen is what keeps two janitors apart. */
  const write = async (move: Move) => {
    const { mark, now } = database.dialect;
    const { moved_from: from, moved_to: to, move_state: state } = toReport(move);
    const sql = `update rag_jobs set moved_from = ${mark(2)}, moved_to = ${mark(3)}, move_state = ${mark(4)}, updated_at = ${now} where job_id = ${mark(5)} and status = 'failed' and coalesce(move_state, '') = ${mark(6)} returning job_id`;
    const params = [database.now(), from, to, state, status.job_id, noted ?? ""];
    if ((await database.query({ name: "rag.tidy", sql }, params)).length === 0)
      throw new QuarryError("lease_lost", `job ${status.job_id} is in other hands`);
    noted = state;
  };
  /** The end is noted when the record is there too: until then somebody comes back for it. */
  let ended: Move | undefined;
  const note = async (move: Move) => {
    if (move.state === "moved") ended = move;
    else await write(move);
  };
  const moves = { jobId: status.job_id, note };
  const begun = fromStatus(status);
  const move = begun && begun.state !== "moved" ? await finishMove(moves, begun) : begun;
  await putIntoFailed({
    ...{ moves, clock, rag: rags.get(status.rag_id), job: status, move, file: takenBy(status)?.file },
    fields: fieldsOf(status),
  });
  if (ended) await write(ended);
}

function fieldsOf(status: JobStatus): ErrorFields {
  const { error, error_type, error_code, suggestions, traceback, filename } = status;
  const code = RAG_ERROR_CODES.find((known) => known === error_code);
  if (code && error_type !== null)
    return { error: error ?? "", error_type, error_code: code, suggestions, traceback: traceback ?? "" };
  return errorFields(new RagError("ERR_WORKER_DIED", error ?? "the worker died"), filename);
}
