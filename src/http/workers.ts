import { z } from "@hono/zod-openapi";
import { WORKER_STATES, type WorkerProcess } from "../queue/worker-processes.ts";
import type { Api, ApiParts } from "./api.ts";
import { empty, json, reply } from "./route.ts";
import { LaneWait } from "./schemas.ts";

const Worker = z
  .strictObject({
    id: z.string(),
    kind: z
      .enum(["process", "remote"])
      .describe("process: runs lanes of its own; remote: takes work over HTTP."),
    host: z.string(),
    pid: z.int().nullable(),
    version: z.string().nullable(),
    lanes: z.array(z.string()),
    capabilities: z.record(z.string(), z.unknown()),
    waits: z.array(LaneWait).describe("Its lanes that need something that is away."),
    started_at: z.string(),
    last_heartbeat: z.string(),
    state: z.enum(WORKER_STATES).describe("stale: silent for so long that its tasks were given to others."),
  })
  .openapi("Worker");

const NewWorker = z
  .strictObject({
    host: z.string().min(1).max(255).describe("Where it runs, for people."),
    version: z.string().min(1).max(100).optional(),
    lanes: z.array(z.string().min(1).max(60)).max(100).default([]).describe("Queues it takes from."),
    capabilities: z
      .record(z.string().min(1).max(100), z.union([z.string().max(500), z.number(), z.boolean()]))
      .default({})
      .describe("What it can do, such as its model."),
  })
  .openapi("NewWorker");

const id = z.strictObject({ id: z.string().min(1).max(100) });

export function addWorkerRoutes(api: Api, { quarry }: ApiParts): void {
  const tag = "Workers";
  api.route(
    {
      method: "post",
      path: "/workers/register",
      scope: "work",
      tag,
      summary: "Registers a worker",
      description: "The answer has the id that it takes tasks under.",
      body: NewWorker,
      answers: { 201: json("The worker", Worker) },
    },
    async ({ body }) => reply(201, shown(await quarry.remote.register(body))),
  );
  api.route(
    {
      method: "post",
      path: "/workers/{id}/heartbeat",
      scope: "work",
      tag,
      summary: "Says that a worker lives",
      description:
        "Claims, extensions and settlements count as heartbeats too. Leases are renewed by `extend`.",
      params: id,
      answers: { 200: json("The worker", Worker) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, shown(await quarry.remote.heartbeat(params.id))),
  );
  api.route(
    {
      method: "delete",
      path: "/workers/{id}",
      scope: "work",
      tag,
      summary: "A worker leaves",
      description: "Release what it holds first; otherwise that goes back when its leases run out.",
      params: id,
      answers: { 204: empty("It has left") },
      problems: ["not_found"],
    },
    async ({ params }) => {
      await quarry.remote.leave(params.id);
      return reply(204, null);
    },
  );
  api.route(
    {
      method: "get",
      path: "/workers",
      scope: "read",
      tag,
      summary: "Lists workers that are active",
      query: z.strictObject({
        state: z.enum([...WORKER_STATES, "all"]).default("active"),
      }),
      answers: { 200: json("Workers", z.strictObject({ workers: z.array(Worker) })) },
    },
    async ({ query }) => {
      const states = query.state === "all" ? WORKER_STATES : [query.state];
      return reply(200, { workers: (await quarry.workers(states)).map(shown) });
    },
  );
}

function shown(worker: WorkerProcess): z.output<typeof Worker> {
  const { startedAt, lastHeartbeat, lanes, capabilities, waits, ...rest } = worker;
  return {
    ...rest,
    lanes: [...lanes],
    capabilities: { ...capabilities },
    waits: [...waits],
    started_at: startedAt,
    last_heartbeat: lastHeartbeat,
  };
}
