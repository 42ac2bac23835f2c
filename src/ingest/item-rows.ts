import { decodePosition, encodeCursor } from "../database/cursor.ts";
import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import type { ItemStatus, ItemType, Operation } from "./queue.ts";

/** An item as its users see it, in the columns' own words, with JSON read. */
export interface Item {
  readonly queue_id: string;
  readonly item_type: ItemType;
  readonly op: Operation;
  readonly tenant_id: string;
  readonly collection: string;
  readonly priority: number;
  readonly status: ItemStatus;
  readonly created_at: string;
  readonly updated_at: string;
  readonly lease_until: string | null;
  readonly worker_id: string | null;
  readonly idempotency_key: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly retry_count: number;
  readonly max_retries: number;
  readonly error_message: string | null;
  readonly last_error_at: string | null;
  readonly branch: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly run_after: string | null;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly parent_id: string | null;
  /** The machine whose paths it is about; null when everybody may take it. */
  readonly seen_on: string | null;
  readonly document_id: string | null;
  /** What it came to: the document, how many files. */
  readonly result: Readonly<Record<string, unknown>> | null;
}

export interface ItemFilter {
  readonly status?: ItemStatus | undefined;
  readonly item_type?: ItemType | undefined;
  readonly op?: Operation | undefined;
  readonly tenant_id?: string | undefined;
  readonly collection?: string | undefined;
  readonly parent_id?: string | undefined;
  readonly seen_on?: string | undefined;
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface ItemPage {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}

export const ITEMS_LISTED_MAX = 1_000;
const FILTERS = ["status", "item_type", "op", "tenant_id", "collection", "parent_id", "seen_on"] as const;
const PLAIN = [
  ...[
    "queue_id",
    "item_type",
    "op",
    "tenant_id",
    "collection",
    "priority",
    "status",
    "created_at",
    "updated_at",
  ],
  ...[
    "lease_until",
    "worker_id",
    "idempotency_key",
    "retry_count",
    "max_retries",
    "error_message",
    "last_error_at",
  ],
  ...["branch", "run_after", "started_at", "completed_at", "parent_id", "seen_on", "document_id"],
];

/** Newest first. */
export async function listItems(database: Database, filter: ItemFilter): Promise<ItemPage> {
  const limit = filter.limit ?? 100;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= ITEMS_LISTED_MAX))
    throw new QuarryError("invalid_input", `limit must be a whole number from 1 to ${ITEMS_LISTED_MAX}`);
  const { mark } = database.dialect;
  const params: unknown[] = [];
  const terms = FILTERS.flatMap((name) =>
    filter[name] === undefined ? [] : [`${name} = ${mark(params.push(filter[name]))}`],
  );
  if (filter.after !== undefined) {
    const [createdAt, id] = decodePosition(filter.after, { list: "a list of items" });
    terms.push(`(created_at, queue_id) < (${mark(params.push(createdAt))}, ${mark(params.push(id))})`);
  }
  const position = database.dialect.name === "postgres" ? "created_at::text" : "created_at";
  const where = terms.length > 0 ? `where ${terms.join(" and ")}` : "";
  const rows = await database.query(
    `select ${PLAIN.join(", ")}, payload_json, metadata, result_json, ${position} as position from unified_queue ${where} order by created_at desc, queue_id desc limit ${limit + 1}`,
    params,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(itemOf),
    next: rows.length > limit && last ? encodeCursor([last.position, last.queue_id]) : undefined,
  };
}

export function itemOf(row: Row): Item {
  return {
    ...Object.fromEntries(PLAIN.map((name) => [name, row[name] ?? null])),
    seen_on: row.seen_on || null,
    payload: readJson(row.payload_json) ?? {},
    metadata: readJson(row.metadata) ?? {},
    result: readJson(row.result_json),
  } as Item;
}

/** Others may have written it. */
function readJson(text: unknown): Record<string, unknown> | null {
  if (typeof text !== "string") return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : { value };
  } catch {
    return { unreadable: text };
  }
}
