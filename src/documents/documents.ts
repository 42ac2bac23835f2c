import type { FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import type { Database, Row, Transaction } from "../database/database.ts";
import { isQuarryError, QuarryError } from "../errors.ts";
import { isUuid, uuidv7 } from "../ids.ts";
import { isName, NAMES_ARE } from "../names.ts";
import type { Key } from "../queue/roll-up.ts";
import { openQueue, type QueueStore } from "../queue/store.ts";
import { refuseUnstorable } from "../queue/text.ts";
import { type Cancelled, cancelWork, redoPhase, retryFailed } from "./changes.ts";
import type { DocumentChunking } from "./facts.ts";
import type { DocumentFiles, Fingerprint, SourceFile } from "./files.ts";
import { type Progress, readProgress } from "./progress.ts";
import type { DocumentQueues, Phase, RemovalPayload, SplitPayload } from "./queues.ts";
import { removeDocuments } from "./remove.ts";
import { documentsFrom, moveSource, type Place, removeFrom, type SourceRow, type Where } from "./sources.ts";
import {
  type DocumentDetails,
  type DocumentFilter,
  type DocumentPage,
  type DocumentState,
  listDocuments,
  readStates,
  showDocument,
} from "./views.ts";

export interface NewDocument {
  /** The file to take in. */
  readonly path: string;
  readonly filename?: string;
  /** Where it came from: the same source again is a new version of the same document. The path unless said. */
  readonly source?: string;
  /** The machine whose path the source is: the same path of another is another document. This one, where the path is the source. */
  readonly seenOn?: string | undefined;
  readonly tenant?: string;
  readonly collection?: string;
  readonly title?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What was said about the version before stays, where nothing else is said now. */
  readonly isMetadataKept?: boolean;
  /** How it is cut, where not as usual. */
  readonly chunking?: DocumentChunking | undefined;
  /** The file, open: it is read instead of what its path leads to by now. */
  readonly opened?: FileHandle;
  /** The same file again: try what failed once more. */
  readonly isRetried?: boolean;
  /** Written in one transaction with a new version; when it throws, there is none. */
  also?(transaction: Transaction, id: string): Promise<void>;
}

export interface Added {
  readonly id: string;
  readonly filename: string;
  readonly change: DocumentChange;
}

/**
 * "replaced": a new version; the old one goes when it is ready. "retried": the same file, and something of it had
 * failed. "metadata_changed": the same file with other metadata, which need no work.
 */
export const DOCUMENT_CHANGES = ["added", "replaced", "retried", "metadata_changed", "unchanged"] as const;
export type DocumentChange = (typeof DOCUMENT_CHANGES)[number];

export interface DocumentsParts {
  readonly database: Database;
  readonly queues: DocumentQueues;
  readonly files: DocumentFiles;
  /** This one's name; undefined where there is only one. */
  readonly machine?: string | undefined;
  readonly attemptsMax: number;
  readonly fileBytesMax: number;
}

/** A copy on its way into the store. */
interface Begun {
  readonly id: string;
  /** The removal that takes it out again, unless its document is there by then. */
  readonly ifAbandoned: Key | undefined;
}

const TRIES_MAX = 5;
const BEGUN_MAX = 10_000;
/** A copy on its way into a store elsewhere, whose document is not there by then, is taken out again. */
const ABANDONED_AFTER_MS = 3_600_000;

/** Everything one can do with documents. */
export class Documents {
  readonly #parts: DocumentsParts;
  readonly #splits: QueueStore<SplitPayload>;
  readonly #removals: QueueStore<RemovalPayload>;
  /** Copies that did not come to their end, by what they are copies of. */
  readonly #begun = new Map<string, Begun>();

  constructor(parts: DocumentsParts) {
    this.#parts = parts;
    this.#splits = openQueue(parts.database, parts.queues.split);
    this.#removals = openQueue(parts.database, parts.queues.removals);
  }

  /** Takes a file in. It is on the disk and in the database when this returns; workers do the rest. */
  async add(document: NewDocument, tries = TRIES_MAX): Promise<Added> {
    const place = {
      tenant: checkedName("tenant", document.tenant ?? "default"),
      collection: checkedName("collection", document.collection ?? "default"),
      source: document.source ?? document.path,
      seen_on: (document.source === undefined ? this.#parts.machine : document.seenOn) ?? null,
    };
    const bytesMax = this.#parts.fileBytesMax;
    const filename = (document.filename ?? basename(document.path)).slice(0, 500);
    const current = await this.#current(place);
    if (current) {
      const fingerprint = await this.#parts.files.fingerprint(sourceOf(document), { bytesMax });
      if (isSameText(current, fingerprint, document)) {
        const change = await this.#keep(current, document, place.seen_on);
        if (change !== undefined) return { id: String(current.id), filename, change };
        // Somebody replaced it meanwhile.
        if (tries > 1) return this.add(document, tries - 1);
      }
    }
    const { id, ifAbandoned } = await this.#begin(place);
    const original = await this.#parts.files
      .addOriginal(id, sourceOf(document), { bytesMax })
      .catch((error) => {
        if (ifAbandoned !== undefined) this.#remember(place, { id, ifAbandoned });
        throw error;
      });
    const row = {
      id,
      filename,
      ...place,
      title: document.title ?? null,
      metadata: describedBy(document, current) ?? {},
      chunking: document.chunking,
      original_path: original.path,
      content_hash: original.contentHash,
      size_bytes: original.sizeBytes,
      max_retries: this.#parts.attemptsMax,
    };
    try {
      await this.#insert(row, { seen: current && String(current.id), ifAbandoned, also: document.also });
      return { id, filename, change: current ? "replaced" : "added" };
    } catch (error) {
      // The row may be there, and then it needs its file.
      if (isQuarryError(error, "commit_unknown")) throw error;
      await this.#parts.files.remove(id).catch((removalError) => {
        if (ifAbandoned === undefined) throw removalError;
      });
      // Somebody took the same source in at the same time: theirs is there now.
      if (isQuarryError(error, "constraint_violated") && tries > 1) return this.add(document, tries - 1);
      throw error;
    }
  }

  /** The id of the document that is meant: all of it, or a beginning that only one has. */
  async idOf(given: string): Promise<string> {
    if (!isBeginning(given)) return this.#existing(given);
    const { database } = this.#parts;
    const sql = `select id from documents where cast(id as text) like ${database.dialect.mark(1)} limit 2`;
    const rows = await database.query({ name: "documents.id_of", sql }, [`${given.toLowerCase()}%`]);
    if (rows.length === 1) return String(rows[0]!.id);
    if (rows.length === 0) throw notFound(given);
    throw new QuarryError("invalid_input", `${given} begins the ids of several documents: give more of it`);
  }

  list(filter: DocumentFilter = {}): Promise<DocumentPage> {
    return listDocuments(this.#parts.database, filter);
  }

  async show(id: string): Promise<DocumentDetails> {
    return showDocument(this.#parts.database, checkedId(id));
  }

  /** What was read from a page; undefined when it was not read yet. */
  pageText(id: string, pageNumber: number): Promise<string | undefined> {
    return this.#parts.files.pageText({ documentId: checkedId(id), pageNumber });
  }

  /** Tries again what failed. Returns how many tasks. */
  async retry(id: string, options: { phase?: Phase | undefined } = {}): Promise<number> {
    return retryFailed(this.#parts, await this.#existing(id), options);
  }

  /** Does a phase, and those after it, again. */
  async redo(id: string, phase: Phase): Promise<void> {
    await redoPhase(this.#parts, await this.#existing(id), phase);
  }

  async cancel(id: string): Promise<Cancelled> {
    return cancelWork(this.#parts, await this.#existing(id));
  }

  async delete(id: string): Promise<void> {
    const removed = await removeDocuments(this.#parts, [checkedId(id)]);
    if (removed.length === 0) throw notFound(id);
  }

  /** By where they came from, a page at a time. */
  from(place: Place, where: Where): AsyncGenerator<SourceRow[]> {
    return documentsFrom(this.#parts, place, where);
  }

  removeFrom(place: Place, where: Where): Promise<number> {
    return removeFrom(this.#parts, place, where);
  }

  /** A file or folder has another name now. */
  move(place: Place, move: { from: string; to: string; isFolder: boolean }): Promise<number> {
    return moveSource(this.#parts, place, move);
  }

  progress(ids?: readonly string[]): Promise<Progress> {
    return readProgress(this.#parts.database, ids);
  }

  /** How many documents are in each state; versions that were replaced are left out. */
  states(): Promise<Record<DocumentState, number>> {
    return readStates(this.#parts.database);
  }

  /** The text is the same: nothing is worked on again. Undefined when it is not the current version any more. */
  async #keep(
    current: Row,
    document: NewDocument,
    seenOn: string | null,
  ): Promise<DocumentChange | undefined> {
    const id = String(current.id);
    if (current.seen_on !== seenOn && !(await this.#adopt(id, seenOn))) return undefined;
    const metadata = describedBy(document, current);
    const isOther = metadata !== undefined && !sameJson(parsed(current.metadata), metadata);
    if (isOther && !(await this.#describe(id, metadata))) return undefined;
    const retried = document.isRetried ? await retryFailed(this.#parts, id) : 0;
    if (retried > 0) return "retried";
    return isOther ? "metadata_changed" : "unchanged";
  }

  /** Of which nobody said where it was seen: it was seen there. */
  async #adopt(id: string, seenOn: string | null): Promise<boolean> {
    const { database } = this.#parts;
    const { dialect } = database;
    const sql = `update documents set seen_on = ${dialect.mark(1)} where ${dialect.isOneOf("id", 2, "uuid")} and seen_on is null and replaced_by is null returning id`;
    const params = [seenOn, dialect.keys([id])];
    return (await database.query({ name: "documents.adopt", sql }, params)).length > 0;
  }

  async #describe(id: string, metadata: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { database } = this.#parts;
    const { dialect } = database;
    const json = JSON.stringify(metadata);
    refuseUnstorable(json, "the metadata");
    const sql = `update documents set metadata = ${dialect.param(2, "json")}, updated_at = ${dialect.now} where ${dialect.isOneOf("id", 3, "uuid")} and replaced_by is null returning id`;
    const params = [database.now(), json, dialect.keys([id])];
    return (await database.query({ name: "documents.describe", sql }, params)).length > 0;
  }

  /** What this machine has seen there, or else what nobody said to have seen. */
  async #current(place: {
    tenant: string;
    collection: string;
    source: string;
    seen_on: string | null;
  }): Promise<Row | undefined> {
    const { database } = this.#parts;
    const { mark } = database.dialect;
    const seenOn = "coalesce(seen_on, '')";
    const [row] = await database.query(
      {
        name: "documents.current",
        sql: `select id, content_hash, size_bytes, metadata, title, chunking, seen_on from documents where tenant = ${mark(1)} and collection = ${mark(2)} and source = ${mark(3)} and ${seenOn} in ('', ${mark(4)}) and replaced_by is null order by ${seenOn} desc limit 1`,
      },
      [place.tenant, place.collection, place.source, place.seen_on ?? ""],
    );
    return row;
  }

  /**
   * A process that dies, or is cut off, between the copy and its row would leave a copy that nobody knows of. While the
   * store is away a file is tried again and again, and each try takes up what the one before has begun.
   */
  async #begin(place: object): Promise<Begun> {
    const key = JSON.stringify(place);
    const begun = this.#begun.get(key);
    this.#begun.delete(key);
    if (begun) return begun;
    const id = uuidv7(this.#parts.database.clock.now());
    if (!this.#parts.files.isRemote) return { id, ifAbandoned: undefined };
    const removal = { document_id: id, kind: "document" };
    const [enqueued] = await this.#removals.enqueue([removal], { delayMs: ABANDONED_AFTER_MS });
    return { id, ifAbandoned: enqueued!.key };
  }

  #remember(place: object, begun: Begun): void {
    if (this.#begun.size >= BEGUN_MAX) this.#begun.delete(this.#begun.keys().next().value!);
    this.#begun.set(JSON.stringify(place), begun);
  }

  /** The version that was seen steps aside first: there is one current document for a source. */
  async #insert(
    row: Row,
    {
      seen,
      ifAbandoned,
      also,
    }: { seen: string | undefined; ifAbandoned: Key | undefined; also: NewDocument["also"] },
  ): Promise<void> {
    const { database } = this.#parts;
    const isPostgres = database.dialect.name === "postgres";
    const [next, old] = isPostgres ? ["$1::uuid", "$2::uuid"] : ["?1", "?2"];
    await database.transaction(async (transaction) => {
      if (seen !== undefined) {
        const replaced = await transaction.query(
          {
            name: "documents.replace",
            sql: `update documents set replaced_by = ${next} where (id = ${old} and replaced_by is null) or replaced_by = ${old} returning id`,
          },
          [row.id, seen],
        );
        if (!replaced.some(({ id }) => id === seen))
          throw new QuarryError("constraint_violated", "another version was taken in meanwhile");
        const removals = replaced.map(({ id }) => ({ document_id: id, kind: "replaced" }));
        await this.#removals.within(transaction).enqueue(removals);
      }
      await this.#splits.within(transaction).enqueue([row]);
      if (ifAbandoned !== undefined) await this.#keepCopy(transaction, ifAbandoned);
      // What is known of the old text stays when the old version goes.
      if (seen !== undefined) {
        const sql = `update step_cache set document_id = ${next} where document_id = ${old}`;
        await transaction.query({ name: "documents.inherit", sql }, [row.id, seen]);
      }
      await also?.(transaction, String(row.id));
    });
  }

  async #keepCopy(transaction: Transaction, ifAbandoned: Key): Promise<void> {
    const { dialect } = this.#parts.database;
    const sql = `delete from document_removals where ${dialect.isOneOf("id", 1, "uuid")} and status = 'pending' and files_status = 'pending' returning id`;
    const kept = await transaction.query({ name: "documents.keep_copy", sql }, [dialect.keys([ifAbandoned])]);
    if (kept.length === 0)
      throw new QuarryError("constraint_violated", "the copy took so long that it was taken for abandoned");
  }

  /** The id as it is stored. */
  async #existing(given: string): Promise<string> {
    const id = checkedId(given);
    const { database } = this.#parts;
    const sql = `select 1 as found from documents where ${database.dialect.isOneOf("id", 1, "uuid")}`;
    const rows = await database.query({ name: "documents.exists", sql }, [database.dialect.keys([id])]);
    if (rows.length === 0) throw notFound(id);
    return id;
  }
}

/** The title is part of what is embedded, so another title is another text; cut otherwise, it is other chunks. */
function isSameText(current: Row, fingerprint: Fingerprint, document: NewDocument): boolean {
  return (
    current.content_hash === fingerprint.contentHash &&
    (document.title === undefined || document.title === current.title) &&
    sameJson(parsed(current.chunking) ?? null, document.chunking ?? null)
  );
}

function sourceOf({ path, opened }: NewDocument): SourceFile {
  return { path, ...(opened && { opened }) };
}

function describedBy(
  { metadata, isMetadataKept }: NewDocument,
  current: Row | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (!isMetadataKept || !current) return metadata;
  return { ...(parsed(current.metadata) as Record<string, unknown>), ...metadata };
}

function parsed(json: unknown): unknown {
  return typeof json === "string" ? JSON.parse(json) : json;
}

/** PostgreSQL orders the keys of its JSON anew. */
function sameJson(a: unknown, b: unknown): boolean {
  const sorted = (value: unknown): unknown =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .sort(([x], [y]) => (x < y ? -1 : 1))
            .map(([k, v]) => [k, sorted(v)]),
        )
      : value;
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

export function checkedName(what: "tenant" | "collection", name: string): string {
  if (isName(name)) return name;
  throw new QuarryError("invalid_input", `${JSON.stringify(name)} cannot be a ${what}: ${NAMES_ARE}`);
}

export function checkedId(id: string): string {
  if (isUuid(id)) return id.toLowerCase();
  throw new QuarryError(
    "invalid_input",
    `${JSON.stringify(id)} is not a document's id: see quarry documents list`,
  );
}

/** Not the whole of an id, but at least so much that somebody meant one. */
function isBeginning(text: string): boolean {
  return /^[0-9a-f-]{4,35}$/i.test(text);
}

function notFound(id: string): QuarryError {
  return new QuarryError("not_found", `there is no document ${id}: see quarry documents list`);
}
