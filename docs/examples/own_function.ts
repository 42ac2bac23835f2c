import { setTimeout as sleep } from "node:timers/promises";
import { defineFunction, openQuarry } from "quarry";
import { z } from "zod";

const taskFor = (worker: string, payload: object) =>
  ({ entity_type: "worker", entity_id: worker, function_name: "count_words", payload }) as const;

/** Counts the words of one text, and enqueues itself for those that are left. */
const countWords = defineFunction({
  name: "count_words",
  entityType: "worker",
  payload: z.object({ texts: z.array(z.string()).min(1), words: z.int().default(0) }),
  run: async ({ entityId, payload: { texts, words } }) => {
    const [text = "", ...left] = texts;
    const total = words + text.split(/\s+/).length;
    if (left.length > 0) return { next: [taskFor(entityId, { texts: left, words: total })] };
    // In the transaction that completes the task, as what follows is. PostgreSQL writes $1 and $2.
    const sql = "update workers set result = ?1, status = 'COMPLETED' where worker_id = ?2";
    return { also: async (transaction) => void (await transaction.query(sql, [String(total), entityId])) };
  },
});

const quarry = await openQuarry({ functions: [countWords] });
const worker = await quarry.tasks.createEntity("worker", "How many words are there?");
await quarry.tasks.enqueue([taskFor(worker, { texts: ["Granite is hard.", "Slate splits."] })]);
await quarry.work({ lanes: ["tasks"] });
while ((await quarry.tasks.counts()).COMPLETED < 2) await sleep(50);
for (const task of (await quarry.tasks.list({ entity_id: worker })).tasks)
  console.log(task.function_name, task.status);
await quarry.close();
