import type { Database, Row } from "../database/database.ts";
import { checkedName } from "../documents/documents.ts";
import { isQuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { cleanText, errorText, refuseUnstorable } from "../queue/text.ts";
import { idempotencyKey } from "./keys.ts";
import { recordId } from "./legacy-rows.ts";
import type { FoundTable, PositionedRow } from "./legacy-source.ts";
import type { LegacyFacts } from "./legacy-tables.ts";
import { clamped, stateOf, timeOf } from "./legacy-values.ts";
import { checkedPayload, checkOperation } from "./payloads.ts";
import { LEASES_MS } from "./queue.ts";

/** What a row of an old table means here. */
export type LegacyMeaning =
  | { readonly kind: "item"; readonly id: string; readonly key: string; readonly item: Row }
  | { readonly kind: "finished"; readonly id: string; readonly key: string }
  | { readonly kind: "unmapped"; readonly id: string; readonly key: string; readonly reason: string };

const RETRIES = { min: 1, max: 100, otherwise: 3 };
const BRANCH_CHARS_MAX = 500;
/** Whoever does not say when they asked has asked before all others. */
const LONG_AGO = "1970-01-01T00:00:00.000Z";

/** Never throws for what a row says. */
export function meaningOf(
  table: FoundTable,
  facts: PositionedRow,
  database: Database,
  now: string,
): LegacyMeaning {
  const key = facts.key ?? facts.path ?? `the row at ${facts.position}`;
  try {
    const isFinished = facts.finishedAt !== null || stateOf(facts.status) === "finished";
    if (isFinished)
      return { kind: "finished", id: recordId(table.name, key, "finished", facts.requestedAt), key };
    const item = itemOf(table, facts, database, now);
    const {
      tenant_id: tenant,
      idempotency_key: same,
      op,
      payload_json: payload,
    } = item as Record<string, string>;
    return {
      kind: "item",
      id: recordId(table.name, key, facts.requestedAt, tenant, same, op, payload),
      key,
      item,
    };
  } catch (error) {
    if (!isQuarryError(error)) throw error;
    return { kind: "unmapped", id: recordId(table.name, key, "unmapped"), key, reason: error.message };
  }
}

/** A row of the unified queue, but for its place in line. */
function itemOf(table: FoundTable, facts: LegacyFacts, database: Database, now: string): Row {
  const work = table.workOf(facts);
  const { item_type: type, op } = work;
  checkOperation(type, op);
  const payload = checkedPayload(type, work.payload);
  const tenant = placeOf("tenant", facts.tenant);
  const collection = placeOf("collection", facts.collection);
  const metadata = work.metadata;
  const payloadJson = JSON.stringify(payload);
  const metadataJson = JSON.stringify(metadata);
  refuseUnstorable(payloadJson, "the payload");
  refuseUnstorable(metadataJson, "the metadata");
  // Times to come are clocks that were wrong.
  const requestedAt = earliest(timeOf(facts.requestedAt), now);
  return {
    queue_id: uuidv7(database.clock.now()),
    item_type: type,
    op,
    tenant_id: tenant,
    collection: collection,
    priority: work.priority,
    created_at: requestedAt ?? now,
    updated_at: requestedAt ?? LONG_AGO,
    idempotency_key: idempotencyKey(type, collection, payload),
    payload_json: payloadJson,
    metadata: metadataJson,
    branch: cleanText(facts.branch || "main").slice(0, BRANCH_CHARS_MAX),
    lease_ms: LEASES_MS[type] ?? null,
    ...stateColumns(table, facts, now),
  };
}

/** How far the old system had come with it. */
function stateColumns(table: FoundTable, facts: LegacyFacts, now: string): Row {
  const isFailed = stateOf(facts.status) === "failed";
  const retriesMax = clamped(facts.retriesMax, RETRIES);
  // What waits has at least one attempt left.
  const spentMax = isFailed ? retriesMax : retriesMax - 1;
  const error = facts.error || (isFailed ? `failed in ${table.name}, which does not say why` : null);
  const errorAt = earliest(timeOf(facts.errorAt), now) ?? now;
  const runAfter = timeOf(facts.runAfter);
  return {
    status: isFailed ? "failed" : "pending",
    retry_count: clamped(facts.retries, { min: 0, max: spentMax, otherwise: 0 }),
    max_retries: retriesMax,
    error_message: error === null ? null : errorText(error),
    last_error_at: error === null ? null : errorAt,
    completed_at: isFailed ? errorAt : null,
    run_after: !isFailed && runAfter !== undefined && runAfter > now ? runAfter : null,
  };
}

function earliest(time: string | undefined, now: string): string | undefined {
  return time !== undefined && time > now ? now : time;
}

function placeOf(what: "tenant" | "collection", given: string | null): string {
  return checkedName(what, given?.trim() || "default");
}
