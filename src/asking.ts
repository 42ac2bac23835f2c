import type { Embedder } from "./adapters/embed.ts";
import type { TextIndex } from "./adapters/fulltext.ts";
import type { LimitsByService } from "./adapters/model-limits.ts";
import { type Asked, Asks, type Question } from "./agents/ask.ts";
import { agentFunctions } from "./agents/functions/all.ts";
import { Hands } from "./agents/hands.ts";
import { Planners } from "./agents/planners.ts";
import { FUNCTION_QUEUE } from "./agents/queue.ts";
import type { FunctionRegistry } from "./agents/registry.ts";
import { retrieve } from "./agents/retrieve.ts";
import { openCatalogueReader } from "./agents/sql-reader.ts";
import type { Tasks } from "./agents/tasks.ts";
import { pause } from "./clock.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { messageOf } from "./errors.ts";
import { openLlm } from "./llm.ts";
import type { Log } from "./log.ts";
import type { Crew } from "./queue/crew.ts";
import type { WorkerProcess } from "./queue/worker-processes.ts";
import type { Search } from "./search/search.ts";

export interface AskOptions extends Omit<Question, "question"> {
  /** Aborted: the question is cancelled. */
  readonly signal?: AbortSignal;
  /** Called when it begins, and whenever something has changed. */
  readonly onProgress?: (asked: Asked) => void;
}

/** Questions to the documents. */
export interface Asking {
  readonly asks: Asks;
  ask(question: string, options?: AskOptions): Promise<Asked>;
  close(): Promise<void>;
}

interface AskingParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly limits: LimitsByService;
  readonly database: Database;
  readonly tasks: Tasks;
  readonly registry: FunctionRegistry;
  readonly search: Search;
  /** Opened when a question first needs them. */
  readonly index: () => Promise<{ readonly embedder: Embedder; readonly fulltext: TextIndex }>;
  readonly workers: () => Promise<readonly WorkerProcess[]>;
  /** Runs the lane of tasks in this process; to be stopped by whoever started it. */
  readonly work: () => Promise<Crew>;
}

/** Puts the six functions into the registry, and gives what questions are asked with. */
export function openAsking(parts: AskingParts): Asking {
  const { database, tasks, settings, search } = parts;
  const planners = new Planners(database);
  const llm = openLlm(settings, parts);
  const reader = openCatalogueReader({ url: settings.databaseUrl, database });
  const functions = agentFunctions({
    database,
    planners,
    llm,
    reader,
    retrieve: async (question, scope, signal) =>
      retrieve({ search, ...(await parts.index()) }, question, scope, signal),
  });
  for (const declared of functions) parts.registry.register(declared);
  const asks = new Asks({ database, planners, tasks });
  const hands = new Hands(parts.work);
  return {
    asks,
    ask: (question, options = {}) => answered({ ...parts, asks, hands }, question, options),
    close: async () => {
      await hands.close();
      await reader.close();
      await llm?.close();
    },
  };
}

interface Answering extends AskingParts {
  readonly asks: Asks;
  readonly hands: Hands;
}

async function answered(
  parts: Answering,
  question: string,
  { signal = new AbortController().signal, onProgress, ...asked }: AskOptions,
): Promise<Asked> {
  signal.throwIfAborted();
  const { asks, hands } = parts;
  const id = await asks.start({ ...asked, question });
  const over = new AbortController();
  const moved = { atMs: parts.database.clock.monotonic() };
  const helping = lendHands(parts, moved, over.signal);
  try {
    let last: Asked | undefined;
    for await (last of asks.follow(id, signal)) {
      moved.atMs = parts.database.clock.monotonic();
      onProgress?.(last);
    }
    signal.throwIfAborted();
    return last!;
  } catch (error) {
    await asks.cancel(id).catch(() => undefined);
    throw error;
  } finally {
    over.abort();
    // Whoever went away does not wait for what runs.
    if (await helping) await hands.leave({ isHurried: signal.aborted });
  }
}

const LOOK_EVERY_MS = 1_000;
/** A worker that was killed is still listed for a while. */
const STANDSTILL_MS = 15_000;

/**
 * Leaves the work to processes that are at it, and does it here when there are none or nothing moves. Returns whether
 * it is done here: then it is to be left once it is over.
 */
async function lendHands(
  { database, workers, hands, log }: Answering,
  moved: { readonly atMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  let hasJoined = false;
  let isTold = false;
  while (!signal.aborted) {
    try {
      const isAtIt = (await workers()).some(({ lanes }) => lanes.includes(FUNCTION_QUEUE));
      const isStill = database.clock.monotonic() - moved.atMs > STANDSTILL_MS;
      if (!hasJoined && (hands.areAtIt || !isAtIt || isStill)) {
        await hands.join();
        hasJoined = true;
      }
    } catch (error) {
      if (!isTold) log.warn({ error: messageOf(error) }, "the question is not worked on here");
      isTold = true;
    }
    await pause(LOOK_EVERY_MS, signal);
  }
  return hasJoined;
}
