import { z } from "@hono/zod-openapi";
import { DOCUMENT_STATES, type DocumentState } from "../documents/views.ts";
import { WORKER_STATES } from "../queue/worker-processes.ts";
import { readStatus } from "../status.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";
import { Counts, LaneWait } from "./schemas.ts";

const Progress = z
  .strictObject({
    documents: z.int(),
    unsplit: z.int().describe("Documents of which it is not yet known how many pages they have."),
    ocr: Counts,
    vector: Counts,
    graphrag: Counts,
    open: z.int().describe("Documents that workers can still do something for."),
  })
  .openapi("Progress");

const WorkerProcess = z
  .strictObject({
    id: z.string(),
    kind: z.enum(["process", "remote"]),
    host: z.string(),
    pid: z.int().nullable(),
    version: z.string().nullable(),
    lanes: z.array(z.string()),
    capabilities: z.record(z.string(), z.unknown()),
    waits: z.array(LaneWait),
    startedAt: z.string(),
    lastHeartbeat: z.string(),
    state: z.enum(WORKER_STATES),
  })
  .openapi("WorkerProcess");

const WaitingItems = z
  .strictObject({
    waiting: z.int().describe("Items of the queue that nobody has taken up yet."),
    withoutWorkers: z
      .array(z.strictObject({ machine: z.string(), items: z.int() }))
      .describe(
        "Machines with paths that some of these are about, and without workers: nobody else takes them.",
      ),
  })
  .openapi("WaitingItems");

const stateCounts = Object.fromEntries(DOCUMENT_STATES.map((state) => [state, z.int()])) as Record<
  DocumentState,
  z.ZodInt
>;

const Status = z
  .strictObject({
    progress: Progress,
    states: z.strictObject(stateCounts).describe("How many documents are in each state."),
    items: WaitingItems,
    workers: z.array(WorkerProcess).describe("Processes that run lanes."),
    paused: z.array(z.string()).describe("Lanes that rest."),
    waits: z
      .array(z.strictObject({ ...LaneWait.shape, workers: z.int().describe("How many processes say so.") }))
      .describe("Lanes that need something that is away."),
  })
  .openapi("Status");

export function addStatusRoutes(api: Api, { quarry }: ApiParts): void {
  api.route(
    {
      method: "get",
      path: "/status",
      scope: "read",
      tag: "Status",
      summary: "How far the work is, and who is at it",
      description: "What `quarry status --json` prints.",
      answers: { 200: json("The state of the work", Status) },
    },
    async () => reply(200, await readStatus(quarry)),
  );
}
