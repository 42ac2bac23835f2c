/**
 * Every key. The first group is the contract's, for anybody to read and to push to; the second is Quarry's own, and a
 * job is always in exactly one of: a list, a worker's hash (with a lease), the delayed ones, or none when it is finished.
 */
export const PREFIX = "rag:ingest:";
export const KEYS = {
  /** Lists of messages: pushed on the left, taken from the right. Others are this name and `:high`, `:low`, … */
  queue: `${PREFIX}queue`,
  /** A list of what failed for good, as JSON with the reason and the message. */
  deadLetter: `${PREFIX}queue:dead-letter`,

  /** A hash by worker: the messages it has in its hands, by job. */
  worker: `${PREFIX}worker:`,
  /** Sorted by when the lease ends: jobs that workers have in their hands. */
  leases: `${PREFIX}leases`,
  /** Sorted by when they are due: jobs that wait for another try, and a hash of their messages. */
  delayed: `${PREFIX}delayed`,
  delayedMessages: `${PREFIX}delayed:messages`,
  /** How far each list has come in taking turns. */
  turns: `${PREFIX}turns`,
  /** Sorted by when they were last heard: workers. */
  workers: `${PREFIX}workers`,
  /** A set: databases whose open jobs this Redis knows. Missing after Redis was emptied. */
  ledgers: `${PREFIX}ledgers`,
} as const;

/** What became of a job; a second key, `…:ttl`, lives as long as this one once the job is finished. */
export function jobKey(jobId: string): string {
  return `${PREFIX}job:${jobId}`;
}

export function listKey(line: string): string {
  return line === "" ? KEYS.queue : `${KEYS.queue}:${line}`;
}
