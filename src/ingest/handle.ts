import type { Database } from "../database/database.ts";
import type { Documents } from "../documents/documents.ts";
import type { SearchableDocuments } from "../documents/searchable.ts";
import { QuarryError } from "../errors.ts";
import type { Task } from "../queue/held.ts";
import type { Ticket } from "../queue/outcome.ts";
import { handleContent } from "./handle-content.ts";
import { deleteDocument, deleteTenant, rename } from "./handle-documents.ts";
import { handleFile } from "./handle-file.ts";
import { handleFolder, handleProject } from "./handle-folder.ts";
import { handleLibrary } from "./handle-library.ts";
import type { Items } from "./items.ts";
import { checkedPayload, checkOperation, type Payload, seenOnOf } from "./payloads.ts";
import type { ItemPayload, ItemType, Operation } from "./queue.ts";

/** What the handlers of items work with. */
export interface ItemParts {
  readonly database: Database;
  readonly documents: Documents;
  readonly items: Items;
  readonly searchable: SearchableDocuments;
  /** A folder for texts and downloads on their way into a document. */
  readonly temporaryFolder: string;
  /** Folders that are not entered, such as our own data folder. */
  readonly except: readonly string[];
  readonly library: LibrarySettings;
  /** This one's name; undefined where there is only one. */
  readonly machine: string | undefined;
}

export interface LibrarySettings {
  /** Whether addresses on the internet may be fetched. */
  readonly isFetched: boolean;
  readonly bytesMax: number;
}

/** An item in the hands of its handler. */
export interface Job<Type extends ItemType = ItemType> {
  readonly id: string;
  readonly claim: Ticket;
  readonly type: Type;
  readonly op: Operation;
  readonly tenant: string;
  readonly collection: string;
  readonly priority: number;
  /** What failed before is tried again: somebody asked for it, or it is not the first attempt. */
  readonly isRetried: boolean;
  readonly payload: Payload<Type>;
  /** The machine whose path it is about; undefined where it is about none, or nobody said. */
  readonly seenOn: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

/** What an item came to, for people and programs to read. */
export type Result = Record<string, unknown>;

/** Others write items too, so everything is checked again. */
export function jobOf(task: Task<ItemPayload>): Job {
  const { item_type: type, op, payload_json: json } = task.row;
  checkOperation(type, op);
  const payload = checkedPayload(type, parsed("payload_json", json));
  return {
    id: String(task.key),
    claim: task,
    type,
    op,
    tenant: task.row.tenant_id,
    collection: task.row.collection,
    priority: task.row.priority,
    isRetried: task.attempt > 1 || task.row.last_enqueue === "retried",
    payload,
    seenOn: seenOnOf(type, payload),
    metadata: parsed("metadata", task.row.metadata ?? "{}") as Record<string, unknown>,
    signal: task.signal,
  };
}

export async function handleItem(parts: ItemParts, job: Job): Promise<Result> {
  const { type } = job;
  switch (type) {
    case "content":
      return handleContent(parts, job as Job<"content">);
    case "file":
      return handleFile(parts, job as Job<"file">);
    case "folder":
      return handleFolder(parts, job as Job<"folder">);
    case "project":
      return handleProject(parts, job as Job<"project">);
    case "library":
      return handleLibrary(parts, job as Job<"library">);
    case "delete_tenant":
      return deleteTenant(parts, job as Job<"delete_tenant">);
    case "delete_document":
      return deleteDocument(parts, job as Job<"delete_document">);
    case "rename":
      return rename(parts, job as Job<"rename">);
    default:
      return type satisfies never;
  }
}

function parsed(column: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new QuarryError("invalid_input", `${column} is not JSON`, { cause });
  }
}
