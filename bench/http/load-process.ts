import { percentile } from "../figures.ts";
import { Client } from "./client.ts";
import { textOf } from "./model.ts";
import type { Load, LoadOrder, LoadReport } from "./requests.ts";

/** The compiler and the connections get ready. Not counted. */
const WARM_UP_MS = 300;

const { url, connections, forMs } = JSON.parse(process.argv[2]!) as LoadOrder;
const client = new Client(url, connections);
const ids: string[] = [];
const post = async () => {
  const mark = `${process.pid}-${Math.random()}`;
  const { id } = (await client.post("/jobs/embedding", { input_text: textOf(mark) })) as { id: string };
  ids.push(id);
};
const get = async () => {
  await client.get(`/jobs/embedding/${ids[Math.floor(Math.random() * ids.length)]}`);
};
const report: LoadReport = { post: await measured(post), get: await measured(get) };
client.close();
process.send!(report);
process.disconnect();

async function measured(ask: () => Promise<void>): Promise<Load> {
  await repeat(ask, WARM_UP_MS);
  return repeat(ask, forMs);
}

/** Every connection asks again as soon as it was answered. */
async function repeat(ask: () => Promise<void>, ms: number): Promise<Load> {
  const times: number[] = [];
  const startedAt = performance.now();
  const askAgain = async () => {
    while (performance.now() - startedAt < ms) {
      const askedAt = performance.now();
      await ask();
      times.push(performance.now() - askedAt);
    }
  };
  await Promise.all(Array.from({ length: connections }, askAgain));
  const tookMs = performance.now() - startedAt;
  return { perSecond: (times.length / tookMs) * 1_000, p99Ms: percentile(times, 99) };
}
