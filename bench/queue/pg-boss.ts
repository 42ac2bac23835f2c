import { countRows, runSql, settleDown } from "../postgres.ts";
import { type Contender, loadPeer, type Payload } from "./contender.ts";

/** What is used of pg-boss. */
interface PgBossModule {
  readonly PgBoss: new (options: {
    connectionString: string;
    supervise: boolean;
    schedule: boolean;
  }) => PgBoss;
}

interface PgBoss {
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  createQueue(name: string): Promise<unknown>;
  send(name: string, data: Payload): Promise<unknown>;
  insert(name: string, jobs: readonly { data: Payload }[]): Promise<unknown>;
  work(
    name: string,
    options: PgBossSettings & { pollingIntervalSeconds: number; burstWhenBatchFull: boolean },
    handler: (jobs: readonly { data: Payload }[]) => Promise<void>,
  ): Promise<string>;
  offWork(name: string, options: { wait: boolean }): Promise<void>;
}

export interface PgBossSettings {
  readonly batchSize: number;
  readonly localConcurrency: number;
}

const QUEUE = "noop";

export function pgBoss(name: string, url: string, settings: PgBossSettings): Contender {
  return {
    name,
    reset: async () => {
      await runSql(url, "drop schema if exists pgboss cascade");
      const boss = await start(url);
      await boss.createQueue(QUEUE);
      await boss.stop({ graceful: false });
    },
    connect: async () => {
      const boss = await start(url);
      return {
        addOne: (payload) => boss.send(QUEUE, payload),
        addMany: (payloads) =>
          boss.insert(
            QUEUE,
            payloads.map((data) => ({ data })),
          ),
        settleDown: () => settleDown(url),
        work: async (handle) => {
          const options = { ...settings, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
          await boss.work(QUEUE, options, async (jobs) => {
            for (const job of jobs) handle(job.data);
          });
          return { stop: () => boss.offWork(QUEUE, { wait: true }) };
        },
        countLeft: () => countRows(url, "pgboss.job", `name = '${QUEUE}' and state <> 'completed'`),
        close: () => boss.stop({ graceful: false }),
      };
    },
  };
}

async function start(connectionString: string): Promise<PgBoss> {
  const { PgBoss } = await loadPeer<PgBossModule>("pg-boss");
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  return boss;
}
