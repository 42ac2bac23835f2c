import type { Embedder } from "./adapters/embed.ts";
import type { TextIndex } from "./adapters/fulltext.ts";
import type { LimitsByService } from "./adapters/model-limits.ts";
import { type Asked, Asks, type Question } from "./agents/ask.ts";
import { agentFunctions } from "./agents/functions/all.ts";
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
  const crews = new Set<Crew>();
  return {
    asks,
    ask: (question, options = {}) => answered({ ...parts, asks, crews }, question, options),
    close: async () => {
      for (const crew of crews) await crew.stop();
      await reader.close();
      await llm?.close();
    },
  };
}

interface Answering extends AskingParts {
  readonly asks: Asks;
  /** Those that work here for a question. */
  readonly crews: Set<Crew>;
}

async function answered(
  parts: Answering,
  question: string,
  { signal = new AbortController().signal, onProgress, ...asked }: AskOptions,
): Promise<Asked> {
  signal.throwIfAborted();
  const { asks } = parts;
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
    const crew = await helping;
    // Whoever went away does not wait for what runs.
    if (signal.aborted) await crew?.worker.hurry();
    await crew?.stop();
    if (crew) parts.crews.delete(crew);
  }
}

const LOOK_EVERY_MS = 1_000;
/** A worker that was killed is still listed for a while. */
const STANDSTILL_MS = 15_000;

/**
 * Leaves the work to processes that are at it, and starts it here when there are none or nothing moves. Returns who is
 * to be stopped once it is over.
 */
async function lendHands(
  { database, workers, work, crews, log }: Answering,
  moved: { readonly atMs: number },
  signal: AbortSignal,
): Promise<Crew | undefined> {
  let crew: Crew | undefined;
  let isTold = false;
  while (!signal.aborted) {
    try {
      const isAtIt = (await workers()).some(({ lanes }) => lanes.includes(FUNCTION_QUEUE));
      const isStill = database.clock.monotonic() - moved.atMs > STANDSTILL_MS;
      if (!crew && (!isAtIt || isStill)) {
        crew = await work();
        crews.add(crew);
      }
    } catch (error) {
      if (!isTold) log.warn({ error: messageOf(error) }, "the question is not worked on here");
      isTold = true;
    }
    await pause(LOOK_EVERY_MS, signal);
  }
  return crew;
}
