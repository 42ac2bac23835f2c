import { z } from "@hono/zod-openapi";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { RemoteOutcome } from "../queue/remote.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";

const TASKS_MAX = 1_000;
/** Each comes with its text, which may be long. */
const CLAIMED_MAX = 100;
const WAIT_SECONDS_MAX = 60;

const name = z.strictObject({ name: z.string().min(1).max(60).openapi({ example: "embeddings" }) });
const worker = z.string().min(1).max(100).describe("The id that the worker was given when it registered.");
const ticket = {
  id: z.uuid(),
  lease_token: z.int().min(0).describe("As it came with the task. It shows who may write about it."),
};
const reason = z.string().min(1).max(8_000);
const delay = z.number().min(0).max(86_400).optional().describe("The queue's own back-off, unless said.");

const Task = z
  .strictObject({
    ...ticket,
    attempt: z.int().describe("1 for the first try."),
    max_attempts: z.int(),
    payload: z.record(z.string(), z.unknown()),
  })
  .openapi("Task");

const Settlement = z
  .discriminatedUnion("outcome", [
    z.strictObject({
      ...ticket,
      outcome: z.literal("done"),
      result: z.record(z.string().max(60), z.unknown()),
    }),
    z.strictObject({ ...ticket, outcome: z.literal("retry"), reason, delay_seconds: delay }),
    z.strictObject({ ...ticket, outcome: z.literal("failed"), reason }),
    z.strictObject({ ...ticket, outcome: z.literal("released"), delay_seconds: delay }),
  ])
  .openapi("Settlement");

const Verdict = z
  .strictObject({
    id: z.uuid(),
    verdict: z
      .enum(["done", "retrying", "failed", "released", "lost"])
      .describe("lost: another worker holds the task now, or it was cancelled; nothing was written."),
  })
  .openapi("Verdict");

const Tickets = z
  .strictObject({ worker_id: worker, tasks: z.array(z.strictObject(ticket)).min(1).max(TASKS_MAX) })
  .openapi("Tickets");

/** Workers in any language: claim, keep alive, settle. */
export function addQueueRoutes(api: Api, { quarry: { remote }, log }: ApiParts): void {
  const tag = "Queues";
  api.route(
    {
      method: "get",
      path: "/queues",
      scope: "work",
      tag,
      summary: "Lists the queues that workers elsewhere may take from",
      answers: { 200: json("Their names", z.strictObject({ queues: z.array(z.string()) })) },
    },
    async () => reply(200, { queues: remote.queues }),
  );
  api.route(
    {
      method: "post",
      path: "/queues/{name}/claim",
      scope: "work",
      tag,
      summary: "Takes the next tasks",
      description:
        "Without tasks the answer waits for some, up to `wait_seconds`. Whoever claims must settle, release or extend within `lease_seconds`, or the task is given to another.",
      params: name,
      body: z.strictObject({
        worker_id: worker,
        limit: z.int().min(1).max(CLAIMED_MAX).default(1),
        wait_seconds: z.number().min(0).max(WAIT_SECONDS_MAX).default(0),
      }),
      answers: {
        200: json("Tasks, or none", z.strictObject({ tasks: z.array(Task), lease_seconds: z.number() })),
      },
      problems: ["not_found"],
    },
    async ({ params, body, signal, stopping }) => {
      const { claims, leaseMs } = await remote.claim(params.name, {
        worker: body.worker_id,
        limit: body.limit,
        waitMs: body.wait_seconds * 1_000,
        signal: AbortSignal.any([signal, stopping]),
      });
      // The caller may also go while the answer is on its way; nobody would settle these.
      const takeBack = () => remote.release(params.name, claims).catch((error) => reportLost(log, error));
      if (claims.length > 0) signal.addEventListener("abort", () => void takeBack(), { once: true });
      const tasks = claims.map(({ key, token, attempt, attemptsMax, row }) => ({
        id: String(key),
        lease_token: token,
        attempt,
        max_attempts: attemptsMax,
        payload: { ...row },
      }));
      return reply(200, { tasks, lease_seconds: leaseMs / 1_000 });
    },
  );
  api.route(
    {
      method: "post",
      path: "/queues/{name}/extend",
      scope: "work",
      tag,
      summary: "Renews the leases of tasks",
      params: name,
      body: Tickets,
      answers: {
        200: json(
          "Which are still held",
          z.strictObject({ held: z.array(z.string()), lost: z.array(z.string()) }),
        ),
      },
      problems: ["not_found"],
    },
    async ({ params, body }) => {
      const kept = await remote.extend(params.name, body.worker_id, body.tasks.map(ticketOf));
      const ids = body.tasks.map(({ id }) => id.toLowerCase());
      return reply(200, { held: ids.filter((id) => kept.has(id)), lost: ids.filter((id) => !kept.has(id)) });
    },
  );
  api.route(
    {
      method: "post",
      path: "/queues/{name}/settle",
      scope: "work",
      tag,
      summary: "Says what became of tasks",
      description:
        "May be repeated when the answer was lost: what was settled stays settled. Only a job that failed for good has left the queue by then and is answered with `lost`.",
      params: name,
      body: z.strictObject({ worker_id: worker, tasks: z.array(Settlement).min(1).max(TASKS_MAX) }),
      answers: { 200: json("A verdict for each", z.strictObject({ tasks: z.array(Verdict) })) },
      problems: ["not_found"],
    },
    async ({ params, body }) => {
      const verdicts = await remote.settle(params.name, body.worker_id, body.tasks.map(outcomeOf));
      return reply(200, { tasks: verdictsOf(body.tasks, verdicts) });
    },
  );
  api.route(
    {
      method: "post",
      path: "/queues/{name}/release",
      scope: "work",
      tag,
      summary: "Gives tasks back untouched",
      description: "It costs no attempt.",
      params: name,
      body: Tickets,
      answers: { 200: json("A verdict for each", z.strictObject({ tasks: z.array(Verdict) })) },
      problems: ["not_found"],
    },
    async ({ params, body }) => {
      const released = body.tasks.map((task) => ({ ...ticketOf(task), kind: "released" as const }));
      const verdicts = await remote.settle(params.name, body.worker_id, released);
      return reply(200, { tasks: verdictsOf(body.tasks, verdicts) });
    },
  );
}

function reportLost(log: Log, error: unknown): void {
  log.warn({ error: messageOf(error) }, "tasks of a caller that has gone wait for their leases to run out");
}

function ticketOf({ id, lease_token: token }: { id: string; lease_token: number }) {
  return { key: id.toLowerCase(), token };
}

function outcomeOf(task: z.output<typeof Settlement>): RemoteOutcome {
  const ticket = ticketOf(task);
  switch (task.outcome) {
    case "done":
      return { ...ticket, kind: "done", result: task.result };
    case "failed":
      return { ...ticket, kind: "failed", reason: task.reason };
    case "retry":
      return { ...ticket, kind: "retry", reason: task.reason, delayMs: inMs(task.delay_seconds) };
    case "released":
      return { ...ticket, kind: "released", delayMs: inMs(task.delay_seconds) };
    default:
      return task satisfies never;
  }
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.round(seconds * 1_000);
}

function verdictsOf<V>(
  tasks: readonly { id: string }[],
  verdicts: readonly V[],
): { id: string; verdict: V }[] {
  return tasks.map(({ id }, position) => ({ id, verdict: verdicts[position]! }));
}
