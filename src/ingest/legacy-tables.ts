import type { NewItem } from "./items.ts";
import { clamped, jsonOf, objectOf } from "./legacy-values.ts";
import { type Operation, PRIORITIES, PRIORITY_MAX } from "./queue.ts";

/**
 * The five tables that the unified queue replaces: which of their columns tell what, and what a row becomes. A fact
 * stands in the first of its columns that the table has and that is not null; docs/migrating.md has the same as a table.
 */
export const FACTS = {
  key: ["queue_id", "id"],
  path: ["file_absolute_path", "file_path"],
  content: ["content"],
  collection: ["collection_name", "collection"],
  tenant: ["tenant_id"],
  branch: ["branch"],
  operation: ["operation", "op"],
  priority: ["priority"],
  requestedAt: ["marked_for_deletion_at", "queued_timestamp", "created_at"],
  runAfter: ["retry_from", "deletion_scheduled_at", "scheduled_at"],
  status: ["status"],
  finishedAt: ["deleted_at"],
  retries: ["retry_count", "attempts"],
  retriesMax: ["max_retries"],
  error: ["error_message", "last_error"],
  /** Points to a row of `messages`. */
  errorId: ["error_message_id"],
  errorAt: ["last_error_at", "completed_at", "updated_at"],
  fileType: ["file_type"],
  fileHash: ["file_hash"],
  fileBytes: ["file_size", "size_bytes"],
  sourceType: ["source_type"],
  mainTag: ["main_tag"],
  fullTag: ["full_tag"],
  missingTools: ["missing_tools"],
  collectionType: ["collection_type"],
  metadata: ["metadata"],
} as const satisfies Record<string, readonly string[]>;
export type Fact = keyof typeof FACTS;
export const FACT_NAMES = Object.keys(FACTS) as readonly Fact[];

/** Facts that the table has no column for are null, like those that were never written. */
export type LegacyFacts = Readonly<Record<Fact, string | null>>;
export type LegacyWork = Pick<NewItem, "item_type" | "op" | "payload" | "priority" | "metadata">;

export interface LegacyTable {
  readonly name: string;
  /** Without these, nobody can say what is to be done. */
  readonly required: readonly Fact[];
  /** How many rows are held at once. */
  readonly rowsPerPage: number;
  workOf(facts: LegacyFacts): LegacyWork;
}

const ROWS_PER_PAGE = 500;
/** Of texts up to 4 MB each. */
const TEXTS_PER_PAGE = 25;

/** Of two requests of one second the one in the later table wins: a file taken in is never lost to its deletion. */
export const LEGACY_TABLES: readonly LegacyTable[] = [
  {
    name: "processing_queue",
    required: ["path", "collection"],
    rowsPerPage: ROWS_PER_PAGE,
    workOf: (facts) => ({ ...fileWork(facts), priority: priorityOfLevel(facts.priority) }),
  },
  {
    name: "missing_metadata_queue",
    required: ["path", "collection"],
    rowsPerPage: ROWS_PER_PAGE,
    workOf: fileWork,
  },
  {
    name: "cumulative_deletions_queue",
    required: ["path", "collection"],
    rowsPerPage: ROWS_PER_PAGE,
    workOf: (facts) => fileWork({ ...facts, operation: "delete" }),
  },
  {
    name: "ingestion_queue",
    required: ["path", "collection"],
    rowsPerPage: ROWS_PER_PAGE,
    workOf: fileWork,
  },
  {
    name: "content_ingestion_queue",
    required: ["content", "collection"],
    rowsPerPage: TEXTS_PER_PAGE,
    workOf: contentWork,
  },
];

function fileWork(facts: LegacyFacts): LegacyWork {
  const operation = operationOf(facts);
  const common = { priority: priorityOf(facts, PRIORITIES.normal), metadata: metadataOf(facts) };
  if (operation === "scan_folder")
    return { ...common, item_type: "folder", op: "scan", payload: { folder_path: facts.path } };
  const bytes = clamped(facts.fileBytes, { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: -1 });
  const payload = {
    file_path: facts.path,
    ...given("file_type", facts.fileType),
    ...given("file_hash", facts.fileHash),
    ...(bytes >= 0 && { size_bytes: bytes }),
  };
  return { ...common, item_type: "file", op: operation as Operation, payload };
}

function contentWork(facts: LegacyFacts): LegacyWork {
  return {
    item_type: "content",
    op: operationOf(facts) as Operation,
    payload: {
      content: facts.content,
      ...given("source_type", facts.sourceType),
      ...given("main_tag", facts.mainTag),
      ...given("full_tag", facts.fullTag),
    },
    priority: priorityOf(facts, PRIORITIES.note),
    metadata: metadataOf(facts),
  };
}

/** Whether there is such an operation is for the queue's own check to say. */
function operationOf(facts: LegacyFacts): string {
  return facts.operation?.trim().toLowerCase() || "ingest";
}

function priorityOf(facts: LegacyFacts, otherwise: number): number {
  return clamped(facts.priority, { min: 0, max: PRIORITY_MAX, otherwise });
}

/** The oldest queue had four levels: low, normal, high, urgent. */
const LEVELS = [PRIORITIES.scan, PRIORITIES.normal, PRIORITIES.activeProject, PRIORITIES.command];

function priorityOfLevel(level: string | null): number {
  return LEVELS[clamped(level, { min: 1, max: LEVELS.length, otherwise: 2 }) - 1]!;
}

function metadataOf(facts: LegacyFacts): Record<string, unknown> {
  return {
    ...objectOf(facts.metadata),
    ...given("collection_type", facts.collectionType),
    ...(facts.missingTools !== null && { missing_tools: jsonOf(facts.missingTools) }),
  };
}

function given(name: string, value: string | null): Record<string, string> {
  return value === null || value === "" ? {} : { [name]: value };
}
