import { z } from "@hono/zod-openapi";
import type { Change } from "../changes.ts";
import { QuarryError } from "../errors.ts";
import type { Api, ApiParts } from "./api.ts";
import { reply, stream } from "./route.ts";

const STREAMS_MAX = 100;
const KINDS = [
  "document",
  "embedding_job",
  "queue_item",
  "task",
  "rag_job",
] as const satisfies readonly Change["kind"][];
/** A stream that says nothing for long is taken for dead by what stands in between. */
const SILENT_LOOKS_MAX = 30;

const EVENT_ID = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;

/** What happens, as it happens. */
export function addEventRoutes(api: Api, { quarry }: ApiParts): void {
  let streams = 0;

  async function* events(
    wanted: { kind: readonly string[]; id: string | undefined; since: string | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    streams++;
    // The first word comes with the first look: whoever has read it misses nothing from then on.
    let silentLooks = SILENT_LOOKS_MAX;
    try {
      for await (const { changes, isIncomplete } of quarry.changes({ since: wanted.since, signal })) {
        const told = changes
          .filter(({ kind, row }) => wanted.kind.includes(kind) && (!wanted.id || row.id === wanted.id))
          .map(({ kind, at, row }) => `id: ${at}\nevent: ${kind}\ndata: ${JSON.stringify(row)}\n\n`);
        if (isIncomplete) told.push("event: overflow\ndata: {}\n\n");
        if (told.length === 0 && ++silentLooks < SILENT_LOOKS_MAX) continue;
        silentLooks = 0;
        yield told.join("") || ": listening\n\n";
      }
    } finally {
      streams--;
    }
  }

  api.route(
    {
      method: "get",
      path: "/events",
      scope: "read",
      tag: "Status",
      summary:
        "Status changes of documents, queue items, RAG jobs, embedding jobs and function tasks, as they happen",
      description:
        "Server-sent events: `event` is the kind, `data` the row as it is now. With `Last-Event-ID` (browsers send it by themselves) a stream goes on where it broke off; what happened in the last moments before may be told again. `overflow` says that more happened than could be told: look at the lists.",
      query: z.strictObject({
        kind: z.array(z.enum(KINDS)).max(KINDS.length).optional().describe("Only these; all unless said."),
        id: z.string().min(1).max(200).optional().describe("Only this document, item, job or task."),
      }),
      headers: z.object({ "last-event-id": z.string().max(40).optional() }),
      answers: { 200: stream("Events", "text/event-stream") },
    },
    async ({ query, headers, signal, stopping }) => {
      if (streams >= STREAMS_MAX)
        throw new QuarryError("resource_exhausted", `${STREAMS_MAX} streams are open already: close some`);
      const since = headers["last-event-id"];
      if (since !== undefined && !(EVENT_ID.test(since) && Date.parse(since) >= 0))
        throw new QuarryError("invalid_input", "Last-Event-ID is not the id of an event");
      const wanted = { kind: query.kind ?? KINDS, id: query.id?.toLowerCase(), since };
      return reply(200, events(wanted, AbortSignal.any([signal, stopping])));
    },
  );
}
