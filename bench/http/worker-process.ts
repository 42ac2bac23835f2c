import { Client } from "./client.ts";
import { BATCH, randomVector } from "./model.ts";
import { drained, inBatches, type WorkerOrder, type WorkerReport } from "./remote.ts";

interface Task {
  readonly id: string;
  readonly lease_token: number;
}

const { url, jobs } = JSON.parse(process.argv[2]!) as WorkerOrder;
const client = new Client(url, 1);
await inBatches(jobs, (texts) => client.post("/jobs/embedding", texts));
const { id: worker_id } = (await client.post("/workers/register", { host: "bench" })) as { id: string };
const tookMs = await drained(jobs, async () => {
  const claimed = await client.post("/queues/embeddings/claim", { worker_id, limit: BATCH });
  const result = { embedding_vector: Array.from(randomVector()) };
  const tasks = (claimed as { tasks: Task[] }).tasks.map(({ id, lease_token }) => ({
    ...{ id, lease_token, outcome: "done", result },
  }));
  const settled = await client.post("/queues/embeddings/settle", { worker_id, tasks });
  return (settled as { tasks: { verdict: string }[] }).tasks.filter((it) => it.verdict === "done").length;
});
client.close();
const report: WorkerReport = { tookMs };
process.send!(report);
process.disconnect();
