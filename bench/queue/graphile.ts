import { countRows, runSql, settleDown } from "../postgres.ts";
import { type Contender, loadPeer, type Payload } from "./contender.ts";

/** What is used of graphile-worker. */
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => unknown;
  run(options: RunnerOptions): Promise<{ stop(): Promise<void> }>;
  makeWorkerUtils(options: { connectionString: string; logger: unknown }): Promise<WorkerUtils>;
}

interface RunnerOptions {
  readonly taskList: Record<string, (payload: Payload) => void>;
  readonly parsedCronItems: readonly never[];
  readonly noHandleSignals: boolean;
  readonly preset: { readonly worker: GraphileSettings & { connectionString: string; logger: unknown } };
}

interface WorkerUtils {
  addJob(identifier: string, payload: Payload): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Payload }[]): Promise<unknown>;
  release(): Promise<void>;
}

export interface GraphileSettings {
  readonly concurrentJobs: number;
  readonly maxPoolSize: number;
  readonly localQueue?: { readonly size: number };
  readonly completeJobBatchDelay?: number;
  readonly failJobBatchDelay?: number;
}

/** Everything its documentation offers for throughput. */
export function fastestSettings(localQueueSize: number): GraphileSettings {
  return {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: localQueueSize },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
}

const TASK = "noop";

export function graphile(name: string, url: string, settings: GraphileSettings): Contender {
  return {
    name,
    reset: async () => {
      await runSql(url, "drop schema if exists graphile_worker cascade");
      const { utils } = await connectUtils(url);
      await utils.release();
    },
    connect: async () => {
      const { worker, logger, utils } = await connectUtils(url);
      return {
        addOne: (payload) => utils.addJob(TASK, payload),
        addMany: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload }))),
        settleDown: () => settleDown(url),
        work: async (handle) =>
          worker.run({
            taskList: { [TASK]: handle },
            parsedCronItems: [],
            noHandleSignals: true,
            preset: { worker: { ...settings, connectionString: url, logger } },
          }),
        countLeft: () => countRows(url, "graphile_worker._private_jobs"),
        close: () => utils.release(),
      };
    },
  };
}

async function connectUtils(url: string) {
  // Read when the module is loaded: a log line per job would slow it down.
  process.env.NO_LOG_SUCCESS = "1";
  const worker = await loadPeer<GraphileWorker>("graphile-worker");
  const logger = new worker.Logger(() => () => undefined);
  const utils = await worker.makeWorkerUtils({ connectionString: url, logger });
  return { worker, logger, utils };
}
