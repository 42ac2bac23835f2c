import { z } from "zod";
import type { Item } from "../ingest/item-rows.ts";
import { ITEM_TYPES, OPERATIONS } from "../ingest/queue.ts";
import { Status } from "./tool-parts.ts";
import { oneLine, visible } from "./words.ts";

export const ItemShape = z.strictObject({
  queue_id: z.string(),
  item_type: z.enum(ITEM_TYPES),
  op: z.enum(OPERATIONS),
  status: Status,
  tenant: z.string(),
  collection: z.string(),
  priority: z.int(),
  about: z.string().describe("The path, or how the text begins."),
  error: z.string().nullable().describe("Why it failed, or why it is tried again."),
  tries: z.int().describe("How often it failed."),
  tries_max: z.int(),
  parent_id: z.string().nullable().describe("The folder item that found it."),
  created_at: z.string(),
  updated_at: z.string(),
});

export const ItemDetails = z.strictObject({
  ...ItemShape.shape,
  worker: z.string().nullable(),
  next_try_at: z.string().nullable(),
  started_at: z.string().nullable(),
  completed_at: z.string().nullable(),
  payload: z.record(z.string(), z.unknown()).describe("What it was given; long texts are cut."),
  result: z.record(z.string(), z.unknown()).nullable().describe("What it came to."),
});

/** Texts inside payloads may have megabytes. */
const TEXT_SHOWN_MAX = 2_000;

export function shownItem(item: Item): z.input<typeof ItemShape> {
  return {
    queue_id: item.queue_id,
    item_type: item.item_type,
    op: item.op,
    status: item.status,
    tenant: item.tenant_id,
    collection: item.collection,
    priority: item.priority,
    about: aboutOf(item),
    error: item.error_message === null ? null : oneLine(item.error_message, TEXT_SHOWN_MAX),
    tries: item.retry_count,
    tries_max: item.max_retries,
    parent_id: item.parent_id,
    created_at: timeText(item.created_at),
    updated_at: timeText(item.updated_at),
  };
}

export function itemDetails(item: Item): z.input<typeof ItemDetails> {
  const time = (value: string | null) => (value === null ? null : timeText(value));
  return {
    ...shownItem(item),
    worker: item.worker_id,
    next_try_at: time(item.run_after),
    started_at: time(item.started_at),
    completed_at: time(item.completed_at),
    payload: cut(item.payload),
    result: item.result && cut(item.result),
  };
}

export function itemLine(item: Item): string {
  const error = item.error_message === null ? "" : ` — ${oneLine(item.error_message)}`;
  return `- ${item.queue_id} ${item.status}: ${item.op} ${item.item_type} "${aboutOf(item)}" (${item.tenant_id}/${item.collection}, priority ${item.priority})${error}`;
}

const ABOUT = [
  "file_path",
  "folder_path",
  "project_root",
  "library_name",
  "document_id",
  "tenant_id_to_delete",
  "old_path",
  "title",
  "source",
  "content",
];

export function aboutOf({ payload }: Item): string {
  const name = ABOUT.find((field) => typeof payload[field] === "string");
  return name === undefined ? "" : oneLine(String(payload[name]), 200);
}

/** PostgreSQL gives dates. */
function timeText(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

function cut(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "string" ? cutText(value) : value]),
  );
}

function cutText(text: string): string {
  const shown = visible(text);
  if (shown.length <= TEXT_SHOWN_MAX) return shown;
  return `${shown.slice(0, TEXT_SHOWN_MAX).toWellFormed()}… (${shown.length} characters)`;
}
