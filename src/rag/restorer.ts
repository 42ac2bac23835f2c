import { randomUUID } from "node:crypto";
import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { FailedJob, Ledger, OpenJob } from "./ledger.ts";
import { letterOf } from "./letters.ts";
import { type JobStatus, KEPT_MS } from "./queue.ts";
import { jobKey, KEYS } from "./redis-keys.ts";
import { BURY_AGAIN } from "./redis-letter-scripts.ts";
import type { RedisLink } from "./redis-link.ts";
import { CONFIRM, ENTER } from "./redis-scripts.ts";

const RESTORED_AT_ONCE = 250;
const LETTERS_AT_ONCE = 200;

interface RestorerParts {
  readonly link: RedisLink;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly clock: Clock;
  readonly now: () => string;
  readonly readJob: (jobId: string) => Promise<(JobStatus & { lease_token: number }) | undefined>;
}

/**
 * Queues open jobs of the ledger again that Redis does not have: because it was emptied, is older than it was, or is another
 * one. So are dead letters listed again. Any number of processes may do so at once: a job is entered only where there is none.
 */
export class Restorer {
  readonly #parts: RestorerParts;
  #passing: Promise<number> | undefined;
  /** Nothing is known of this Redis until all open jobs were compared with it. */
  #isDue = true;
  /** Where the slow round stands that goes on while nothing seems wrong. */
  #position: OpenJob["position"] | undefined;

  constructor(parts: RestorerParts) {
    this.#parts = parts;
  }

  /** Compares everything soon: Redis does not know this ledger, or came back. */
  hurry(): void {
    this.#isDue = true;
    void this.restore().catch((error) => {
      this.#parts.log.warn({ error: messageOf(error) }, "open jobs could not be compared with redis");
    });
  }

  /** Redis came back and may be older than it was. Until it was first asked for anything, there is nothing to compare. */
  cameBack(): void {
    if (!this.#isDue) this.hurry();
  }

  /** Returns how many jobs were queued again. */
  restore(): Promise<number> {
    this.#passing ??= this.#pass().finally(() => {
      this.#passing = undefined;
    });
    return this.#passing;
  }

  /** For the janitor: all of it when that is due, else the next few of a round without end. */
  async lookOn(limit: number): Promise<number> {
    if (this.#isDue || !(await this.#isKnown())) return this.restore();
    const jobs = await this.#parts.ledger.open({ limit, after: this.#position });
    this.#position = jobs.length < limit ? undefined : jobs.at(-1)?.position;
    return this.#enter(jobs);
  }

  /** Should Redis be emptied in the middle of it, it begins again. */
  async #pass(): Promise<number> {
    const { link, ledger, log, now } = this.#parts;
    let restored = 0;
    let buried = 0;
    this.#isDue = false;
    try {
      const id = await ledger.id();
      const wasKnown = await this.#isKnown();
      for (let isKnown: unknown = 0; isKnown === 0; ) {
        const pass = `pass ${randomUUID()}`;
        await link.command("SADD", KEYS.ledgers, pass);
        restored += await this.#enterAll();
        buried += await this.#buryAll({ wasKnown });
        isKnown = await link.run(CONFIRM, [now(), pass, id]);
      }
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
    if (restored > 0) log.warn({ restored }, "redis had lost jobs; they are queued again");
    if (buried > 0) log.warn({ restored: buried }, "redis had lost dead letters; they are listed again");
    return restored;
  }

  async #enterAll(): Promise<number> {
    let restored = 0;
    for (let after: OpenJob["position"] | undefined; ; ) {
      const jobs = await this.#parts.ledger.open({ limit: RESTORED_AT_ONCE, after });
      restored += await this.#enter(jobs);
      if (jobs.length < RESTORED_AT_ONCE) return restored;
      after = jobs.at(-1)!.position;
    }
  }

  /**
   * A letter outlives what is known of its job, so where that is gone the list itself is looked through. In a Redis that
   * was not emptied, jobs are forgotten when their time is over, and a letter of such a job that is not there was taken.
   */
  async #buryAll({ wasKnown }: { wasKnown: boolean }): Promise<number> {
    const { link, ledger, now, clock } = this.#parts;
    const forgottenBefore = wasKnown ? clock.now() - KEPT_MS : Number.NEGATIVE_INFINITY;
    let listed: ReadonlySet<string> | undefined;
    let buried = 0;
    for (let after: FailedJob["position"] | undefined; ; ) {
      const jobs = await ledger.failed({ limit: RESTORED_AT_ONCE, after });
      const known = await Promise.all(jobs.map(({ job_id }) => link.command("EXISTS", jobKey(job_id))));
      const unknown = jobs.filter(
        ({ failed_at }, index) => known[index] === 0 && Date.parse(failed_at) > forgottenBefore,
      );
      if (unknown.length > 0) {
        listed ??= await this.#listed();
        const lost = unknown.filter(({ job_id }) => !listed!.has(job_id));
        buried += Number(await link.run(BURY_AGAIN, [now(), ...lost.flatMap(buryArgs)]));
      }
      if (jobs.length < RESTORED_AT_ONCE) return buried;
      after = jobs.at(-1)!.position;
    }
  }

  /** Jobs that have a dead letter. */
  async #listed(): Promise<Set<string>> {
    const ids = new Set<string>();
    for (let start = 0; ; start += LETTERS_AT_ONCE) {
      const range = [String(start), String(start + LETTERS_AT_ONCE - 1)];
      const texts = (await this.#parts.link.command("LRANGE", KEYS.deadLetter, ...range)) as string[];
      for (const text of texts) ids.add(letterOf(text).id);
      if (texts.length < LETTERS_AT_ONCE) return ids;
    }
  }

  async #isKnown(): Promise<boolean> {
    const { link, ledger } = this.#parts;
    return (await link.command("SISMEMBER", KEYS.ledgers, await ledger.id())) === 1;
  }

  async #enter(jobs: readonly OpenJob[]): Promise<number> {
    if (jobs.length === 0) return 0;
    const { link, ledger, now, readJob } = this.#parts;
    const before = (await link.run(ENTER, [now(), "restore", ...jobs.flatMap(enterArgs)])) as string[];
    const finished = jobs.filter((_job, index) => before[index] === "done" || before[index] === "failed");
    const known = await Promise.all(finished.map(({ job_id }) => readJob(job_id)));
    await ledger.mirror(known.filter((job) => job !== undefined));
    return before.filter((status) => status === "").length;
  }
}

type Known = Omit<OpenJob, "position" | "delayMs">;

function knownArgs(job: Known): (string | number)[] {
  const { job_id, message, list, rag_id, filename, submitted_at, retry_count, max_retries } = job;
  return [job_id, message, list, rag_id, filename, submitted_at, retry_count, max_retries];
}

export function enterArgs(job: Known & Pick<OpenJob, "delayMs">): (string | number)[] {
  return [...knownArgs(job), job.delayMs];
}

function buryArgs(job: FailedJob): (string | number)[] {
  const { started_at, failed_at, error, error_type, error_code } = job;
  return [...knownArgs(job), started_at, failed_at, error, error_type, error_code];
}
