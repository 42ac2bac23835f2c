import { defineQueue, type Queue, type QueueDeclaration } from "../queue/declaration.ts";
import { exponential } from "../queue/retry-policy.ts";

/**
 * The front door, to be read first. Whatever changes comes in as an item: what it is about, what is to be done with
 * it, and a key that says when two items mean the same thing. One lane takes items in the order of their priority,
 * tenants taking turns; a second one always takes the item that has waited longest, so that nothing starves.
 */
export const ITEM_TYPES = [
  "content",
  "file",
  "folder",
  "project",
  "library",
  "delete_tenant",
  "delete_document",
  "rename",
] as const;
export type ItemType = (typeof ITEM_TYPES)[number];

export const OPERATIONS = ["ingest", "update", "delete", "scan"] as const;
export type Operation = (typeof OPERATIONS)[number];

export const ITEM_STATUSES = ["pending", "in_progress", "done", "failed"] as const;
export type ItemStatus = (typeof ITEM_STATUSES)[number];

/** What can be done with what. The schema has the same as a check. */
export const OPERATIONS_OF: Readonly<Record<ItemType, readonly Operation[]>> = {
  content: ["ingest", "update", "delete"],
  file: ["ingest", "update", "delete"],
  folder: ["ingest", "delete", "scan"],
  project: ["ingest", "delete", "scan"],
  library: ["ingest", "update", "delete"],
  delete_tenant: ["delete"],
  delete_document: ["delete"],
  rename: ["update"],
};

export const PRIORITIES = {
  /** Somebody waits for the answer. */
  immediate: 10,
  command: 9,
  note: 8,
  activeProject: 7,
  normal: 5,
  scan: 3,
  library: 1,
  deferred: 0,
} as const;
export const PRIORITY_MAX = 10;

export interface ItemPayload {
  item_type: ItemType;
  op: Operation;
  tenant_id: string;
  collection: string;
  priority: number;
  payload_json: string;
  metadata: string | null;
  branch: string | null;
  last_enqueue: string;
}

export interface ItemQueues {
  readonly items: Queue<ItemPayload>;
  /** The same rows in the order of their age. */
  readonly oldest: Queue<ItemPayload>;
}

/** Names of the lanes that take items, and with them paths of the machine they run on. */
export const ITEM_LANES = ["items", "items.oldest"] as const;

const LEASE_MS = 5 * 60_000;
/** A scan of a large folder takes long, and whoever repeats it does it all again. */
export const LEASES_MS: Partial<Record<ItemType, number>> = {
  folder: 15 * 60_000,
  project: 15 * 60_000,
  delete_tenant: 15 * 60_000,
};
const DAY_MS = 24 * 3_600_000;

/** Without a machine's name there is only one, and it takes every item. */
export function itemQueues({ machine }: { machine?: string | undefined } = {}): ItemQueues {
  const shared = {
    table: "unified_queue",
    key: { column: "queue_id", type: "text" },
    columns: {
      status: "status",
      token: "lease_token",
      lease: "lease_until",
      runAfter: "run_after",
      attempts: "retry_count",
      error: "error_message",
      worker: "worker_id",
      createdAt: "created_at",
      startedAt: "started_at",
      finishedAt: "completed_at",
      updatedAt: "updated_at",
      errorAt: "last_error_at",
    },
    statuses: { running: "in_progress", done: "done" },
    attempts: { count: "failures", max: "max_retries" },
    lease: { ms: LEASE_MS, column: "lease_ms" },
    retry: exponential({ baseMs: 5_000, capMs: 300_000 }),
    ...(machine !== undefined && { reserved: { column: "seen_on", for: machine } }),
    reads: [
      ...["item_type", "op", "tenant_id", "collection", "priority", "payload_json", "metadata", "branch"],
      "last_enqueue",
    ],
    results: ["result_json"],
    retention: { doneMs: 7 * DAY_MS },
  } as const satisfies Partial<QueueDeclaration<ItemPayload>>;
  return {
    items: defineQueue<ItemPayload>({
      ...shared,
      name: ITEM_LANES[0],
      order: [{ column: "priority", direction: "desc" }, "fair_tag", "created_at"],
    }),
    oldest: defineQueue<ItemPayload>({ ...shared, name: ITEM_LANES[1], order: ["created_at"] }),
  };
}
