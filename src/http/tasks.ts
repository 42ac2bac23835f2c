import { z } from "@hono/zod-openapi";
import { ENTITY_TYPES, FUNCTION_TASK_STATUSES } from "../agents/queue.ts";
import { TASKS_LISTED_MAX } from "../agents/task-rows.ts";
import { newTaskSchema } from "../agents/tasks.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";

const TASKS_CREATED_MAX = 1_000;
const text = z.string().nullable();

/** In the words of the table's columns. */
const Task = z
  .strictObject({
    task_id: z.string(),
    entity_type: z.enum(ENTITY_TYPES),
    entity_id: z.string(),
    function_name: z.string(),
    payload: z.unknown().optional().describe("What its function is given. Not in lists."),
    status: z.enum(FUNCTION_TASK_STATUSES),
    error_message: text,
    retry_count: z.int(),
    max_retries: z.int(),
    created_at: z.string(),
    updated_at: z.string().describe("Of a task that is over: when it ended."),
    started_at: text,
    retry_after: text.describe("When it is tried again."),
    claimed_by: text.describe("The process that works on it, or did."),
  })
  .openapi("FunctionTask");
const NewTask = z.strictObject(newTaskSchema.shape).openapi("NewFunctionTask");
const Enqueued = z.strictObject({ task_id: z.string() }).openapi("EnqueuedFunctionTask");

const id = z.strictObject({ id: z.string().min(1).max(200) });

/** Steps of agents: functions that run one at a time for each planner and worker. */
export function addTaskRoutes(api: Api, { quarry: { tasks } }: ApiParts): void {
  const tag = "Function tasks";
  api.route(
    {
      method: "post",
      path: "/tasks",
      scope: "write",
      tag,
      summary: "Enqueues a task, or several",
      description:
        "Several are all enqueued or none. The function must be registered, its payload what it needs, the planner or worker there.",
      body: z.union([NewTask, z.array(NewTask).min(1).max(TASKS_CREATED_MAX)]),
      answers: {
        201: json("Their ids, in the form it was asked for", z.union([Enqueued, z.array(Enqueued)])),
      },
      problems: ["not_found"],
    },
    async ({ body }) => {
      const ids = await tasks.enqueue(Array.isArray(body) ? body : [body]);
      const enqueued = ids.map((task_id) => ({ task_id }));
      return reply(201, Array.isArray(body) ? enqueued : enqueued[0]!);
    },
  );
  api.route(
    {
      method: "get",
      path: "/tasks",
      scope: "read",
      tag,
      summary: "Lists tasks, newest first",
      query: z.strictObject({
        status: z.enum(FUNCTION_TASK_STATUSES).optional(),
        entity_type: z.enum(ENTITY_TYPES).optional(),
        entity_id: z.string().min(1).max(200).optional(),
        function_name: z.string().min(1).max(100).optional(),
        limit: z.int().min(1).max(TASKS_LISTED_MAX).default(100),
        after: z.string().max(500).optional().describe("`next` of the page before."),
      }),
      answers: {
        200: json(
          "A page of tasks",
          z.strictObject({
            tasks: z.array(Task),
            next: text.describe("For the next page; null on the last one."),
          }),
        ),
      },
    },
    async ({ query }) => {
      const page = await tasks.list(query);
      return reply(200, { tasks: page.tasks, next: page.next ?? null });
    },
  );
  api.route(
    {
      method: "get",
      path: "/tasks/{id}",
      scope: "read",
      tag,
      summary: "A task, with its payload",
      params: id,
      answers: { 200: json("The task", Task) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, await tasks.read(params.id)),
  );
  api.route(
    {
      method: "post",
      path: "/tasks/{id}/retry",
      scope: "write",
      tag,
      summary: "Puts a failed task back into line",
      description:
        "Its count of tries stays: with tries left it has those, with none it has one. One that waits to be tried again is tried at once.",
      params: id,
      answers: { 200: json("The task", Task) },
      problems: ["not_found", "too_late"],
    },
    async ({ params }) => reply(200, await tasks.retry(params.id)),
  );
  api.route(
    {
      method: "delete",
      path: "/tasks/{id}",
      scope: "write",
      tag,
      summary: "Cancels a task",
      description:
        "One that waits goes away, one that runs is taken from its worker; a finished one is too late.",
      params: id,
      answers: {
        200: json(
          "What became of it",
          z.strictObject({ task_id: z.string(), verdict: z.enum(["cancelled", "aborted"]) }),
        ),
      },
      problems: ["not_found", "too_late"],
    },
    async ({ params }) => reply(200, { task_id: params.id, verdict: await tasks.cancel(params.id) }),
  );
}
