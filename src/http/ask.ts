import { z } from "@hono/zod-openapi";
import { type Asked, questionSchema } from "../agents/ask.ts";
import { PHASES, WORKER_KINDS } from "../agents/planners.ts";
import { FUNCTION_TASK_STATUSES } from "../agents/queue.ts";
import { QuarryError } from "../errors.ts";
import type { Api, ApiParts } from "./api.ts";
import { eventsOf } from "./ask-events.ts";
import { json, jsonOrStream, reply } from "./route.ts";

const text = z.string().nullable();
const status = z.enum(FUNCTION_TASK_STATUSES);

const Step = z.strictObject({ kind: z.enum(WORKER_KINDS), task: z.string() }).openapi("PlanStep");
const Citation = z
  .union([
    z.strictObject({
      number: z.int().describe("As in the answer: [1]."),
      kind: z.literal("passage"),
      document_id: z.string(),
      chunk_id: z.string(),
      filename: z.string(),
      page_number: z.int(),
      quote: z.string(),
    }),
    z.strictObject({
      number: z.int(),
      kind: z.literal("catalogue"),
      sql: z.string().describe("What the catalogue was asked."),
      rows: z.int(),
    }),
  ])
  .openapi("Citation");

/** In the words of the tables' columns. */
const AskedQuestion = z
  .strictObject({
    planner_id: z.string(),
    user_question: z.string(),
    instruction: z.string(),
    tenant: z.string(),
    collection: text,
    status: status.describe("COMPLETED: the answer is there. FAILED: error_message says why it is not."),
    phase: z.enum(PHASES),
    plan: z.array(Step).nullable(),
    answer: text,
    citations: z.array(Citation).describe("What the marks in the answer stand for."),
    notes: z
      .array(z.string())
      .describe("What to know about the answer: parts that are missing, a model that was away."),
    tokens_used: z.int(),
    tokens_total: z.int().describe("Those of the workers included."),
    error_message: text,
    created_at: z.string(),
    started_at: text,
    finished_at: text,
    workers: z.array(
      z.strictObject({
        worker_id: z.string(),
        position: z.int(),
        kind: z.enum(WORKER_KINDS),
        task: z.string(),
        status,
        tokens_used: z.int(),
        error_message: text,
        started_at: text,
        finished_at: text,
      }),
    ),
  })
  .openapi("AskedQuestion");

const Body = z
  .strictObject({
    ...questionSchema.shape,
    wait: z
      .boolean()
      .default(true)
      .describe("false: answers at once with the question's id, and goes on without whoever asked."),
  })
  .openapi("Question");

/** Whoever waits holds a connection and looks at the database all the time. */
const WAITING_MAX = 50;

export function addAskRoutes(api: Api, { quarry }: ApiParts): void {
  const tag = "Questions";
  let waiting = 0;

  function refuseTooMany(): void {
    if (waiting < WAITING_MAX) return;
    throw new QuarryError(
      "resource_exhausted",
      `${WAITING_MAX} questions are waited for already: ask with "wait": false`,
    );
  }

  async function waited<T>(work: () => Promise<T>): Promise<T> {
    refuseTooMany();
    waiting++;
    return work().finally(() => {
      waiting--;
    });
  }

  api.route(
    {
      method: "post",
      path: "/ask",
      scope: "write",
      tag,
      summary: "Answers a question from the documents, and says where each statement is from",
      description:
        "Answers when it is done. With `Accept: text/event-stream` it tells how far it is: each event is the question as it is then, named `progress`, the last one `answer` or `failed`, with `error_message`. Whoever goes away while waiting cancels the question. Without a worker process the server works on it itself.",
      headers: z.object({ accept: z.string().max(1_000).optional() }),
      body: Body,
      answers: {
        200: jsonOrStream("The answer", AskedQuestion, "text/event-stream"),
        202: json("Asked without waiting", AskedQuestion),
      },
      problems: ["resource_exhausted"],
    },
    async ({ body, headers, signal, stopping }) => {
      const { question, wait, ...options } = body;
      if (!wait) return reply(202, await quarry.asks.read(await quarry.asks.start({ question, ...options })));
      // Before a stream begins: then it would be too late to refuse it.
      refuseTooMany();
      const ask = async (onProgress?: (asked: Asked) => void) => {
        const wanted = { ...options, signal: AbortSignal.any([signal, stopping]) };
        const answer = waited(() => quarry.ask(question, { ...wanted, ...(onProgress && { onProgress }) }));
        return answer.catch((error) => {
          if (!stopping.aborted) throw error;
          throw new QuarryError(
            "shutting_down",
            "the server is stopping and the question was cancelled: ask again",
          );
        });
      };
      if (headers.accept?.includes("text/event-stream")) return reply(200, eventsOf(ask));
      return reply(200, await ask());
    },
  );

  api.route(
    {
      method: "get",
      path: "/ask/{planner_id}",
      scope: "read",
      tag,
      summary: "A question, how far it is and, once it is there, its answer",
      params: z.strictObject({ planner_id: z.string().min(1).max(200) }),
      answers: { 200: json("The question", AskedQuestion) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, await quarry.asks.read(params.planner_id)),
  );
}
