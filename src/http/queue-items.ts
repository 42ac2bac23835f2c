import { z } from "@hono/zod-openapi";
import { ITEMS_LISTED_MAX } from "../ingest/item-rows.ts";
import { ENQUEUE_VERDICTS } from "../ingest/items.ts";
import { PAYLOADS } from "../ingest/payloads.ts";
import {
  ITEM_STATUSES,
  ITEM_TYPES,
  type ItemType,
  OPERATIONS,
  OPERATIONS_OF,
  PRIORITY_MAX,
} from "../ingest/queue.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";
import { machine } from "./schemas.ts";

const ITEMS_CREATED_MAX = 1_000;
const text = z.string().nullable();
const fields = z.record(z.string(), z.unknown());

/** In the words of the table's columns; what is JSON there is read. */
const Item = z
  .strictObject({
    queue_id: z.string(),
    item_type: z.enum(ITEM_TYPES),
    op: z.enum(OPERATIONS),
    tenant_id: z.string(),
    collection: z.string(),
    priority: z.int(),
    status: z.enum(ITEM_STATUSES),
    created_at: z.string(),
    updated_at: z.string(),
    lease_until: text,
    worker_id: text,
    idempotency_key: z.string(),
    payload: fields,
    retry_count: z.int(),
    max_retries: z.int(),
    error_message: text,
    last_error_at: text,
    branch: text,
    metadata: fields,
    run_after: text.describe("When it is tried again."),
    started_at: text,
    completed_at: text,
    parent_id: text.describe("The scan that found it."),
    seen_on: text.describe("The machine whose paths it is about: only workers there take it."),
    document_id: text.describe("What it became, from the moment that there is one."),
    result: fields.nullable().describe("What it came to: the document, how many files."),
  })
  .openapi("QueueItem");

const name = z.string().min(1).max(100);
/** What an item of each type may be asked to do, and with what. */
function newItem<Type extends ItemType>(type: Type) {
  return z.strictObject({
    item_type: z.literal(type),
    op: z.enum(OPERATIONS_OF[type]),
    payload: PAYLOADS[type],
    tenant_id: name.optional(),
    collection: name.optional(),
    priority: z
      .int()
      .min(0)
      .max(PRIORITY_MAX)
      .optional()
      .describe("10: somebody waits; 5 unless said; 0: some time."),
    branch: z.string().max(300).optional(),
    metadata: fields.optional(),
    max_retries: z.int().min(1).max(100).optional(),
  });
}

const NewItem = z
  .discriminatedUnion("item_type", [
    newItem("content"),
    newItem("file"),
    newItem("folder"),
    newItem("project"),
    newItem("library"),
    newItem("delete_tenant"),
    newItem("delete_document"),
    newItem("rename"),
  ])
  .openapi("NewQueueItem");

const Enqueued = z
  .strictObject({
    queue_id: z.string(),
    idempotency_key: z.string(),
    verdict: z
      .enum(ENQUEUE_VERDICTS)
      .describe(
        "merged: into one that waits; runs_again: after the one being worked on; requeued: the one before had ended.",
      ),
  })
  .openapi("EnqueuedItem");

const id = z.strictObject({ id: z.string().min(1).max(100) });

/** The front door: everything that changes comes in as an item. */
export function addQueueItemRoutes(api: Api, { quarry: { queue } }: ApiParts): void {
  const tag = "Queue items";
  api.route(
    {
      method: "post",
      path: "/queue/items",
      scope: "write",
      tag,
      summary: "Enqueues an item, or several",
      description:
        "Several are all enqueued or none. The same thing again is not a second item; the verdict says what became of it.",
      body: z.union([NewItem, z.array(NewItem).min(1).max(ITEMS_CREATED_MAX)]),
      answers: {
        201: json("What became of it, in the form it was asked for", z.union([Enqueued, z.array(Enqueued)])),
      },
    },
    async ({ body }) => {
      const enqueued = await queue.enqueueMany(Array.isArray(body) ? body : [body]);
      return reply(201, Array.isArray(body) ? enqueued : enqueued[0]!);
    },
  );
  api.route(
    {
      method: "get",
      path: "/queue/items",
      scope: "read",
      tag,
      summary: "Lists items, newest first",
      query: z.strictObject({
        status: z.enum(ITEM_STATUSES).optional(),
        item_type: z.enum(ITEM_TYPES).optional(),
        op: z.enum(OPERATIONS).optional(),
        tenant_id: name.optional(),
        collection: name.optional(),
        parent_id: z.string().max(100).optional(),
        seen_on: machine("About paths of one machine.").optional(),
        limit: z.int().min(1).max(ITEMS_LISTED_MAX).default(100),
        after: z.string().max(500).optional().describe("`next` of the page before."),
      }),
      answers: {
        200: json(
          "A page of items",
          z.strictObject({
            items: z.array(Item),
            next: text.describe("For the next page; null on the last one."),
          }),
        ),
      },
    },
    async ({ query }) => {
      const { items, next } = await queue.list(query);
      return reply(200, { items: [...items], next: next ?? null });
    },
  );
  api.route(
    {
      method: "get",
      path: "/queue/items/{id}",
      scope: "read",
      tag,
      summary: "An item, with what it came to",
      params: id,
      answers: { 200: json("The item", Item) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, await queue.read(params.id)),
  );
  api.route(
    {
      method: "delete",
      path: "/queue/items/{id}",
      scope: "write",
      tag,
      summary: "Cancels an item",
      description:
        "One that waits goes away, one that is worked on is taken from its worker; a finished one is too late.",
      params: id,
      answers: {
        200: json(
          "What became of it",
          z.strictObject({ queue_id: z.string(), verdict: z.enum(["cancelled", "aborted"]) }),
        ),
      },
      problems: ["not_found", "too_late"],
    },
    async ({ params }) => reply(200, { queue_id: params.id, verdict: await queue.cancel(params.id) }),
  );
  api.route(
    {
      method: "post",
      path: "/queue/items/{id}/retry",
      scope: "write",
      tag,
      summary: "Puts an item back into line, with fresh counters",
      params: id,
      answers: { 200: json("The item", Item) },
      problems: ["not_found", "too_late"],
    },
    async ({ params }) => reply(200, await queue.retry(params.id)),
  );
}
