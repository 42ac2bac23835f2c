import { z } from "@hono/zod-openapi";
import { PHASES, TASK_STATUSES } from "../documents/queues.ts";
import { DOCUMENT_STATES } from "../documents/views.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";
import { Counts, Metadata, machine, name } from "./schemas.ts";

const TAG = "Documents";
const Id = z.strictObject({ id: z.uuid() });
const phaseStatus = (phase: string) => z.enum(TASK_STATUSES).optional().describe(`How far ${phase} is.`);

const Summary = z
  .strictObject({
    id: z.uuid(),
    filename: z.string(),
    title: z.string().nullable(),
    tenant: z.string(),
    collection: z.string(),
    source: z.string().describe("Where it came from; the same source again is a new version."),
    seenOn: z.string().nullable().describe("The machine whose path the source is, where that is known."),
    mediaType: z.string().nullable(),
    sizeBytes: z.int(),
    pages: z.int().nullable(),
    chunks: z.int(),
    state: z
      .enum(DOCUMENT_STATES)
      .describe("partial: some of it failed, the rest can be found; failed: nothing can."),
    ocrStatus: z.enum(TASK_STATUSES),
    vectorStatus: z.enum(TASK_STATUSES),
    graphragStatus: z.enum(TASK_STATUSES),
    error: z.string().nullable(),
    metadata: Metadata,
    replacedBy: z.uuid().nullable().describe("The newer version that will take its place."),
    createdAt: z.string(),
  })
  .openapi("Document");

const Failure = z.strictObject({
  phase: z.enum(PHASES),
  pageNumber: z.int().nullable(),
  chunkIndex: z.int().nullable(),
  attempts: z.int(),
  error: z.string().nullable(),
});

const Details = z
  .strictObject({
    ...Summary.shape,
    ocr: Counts,
    vector: Counts,
    graphrag: Counts,
    tokens: z
      .strictObject({ ocr: z.int(), vector: z.int(), graphrag: z.int() })
      .describe("What models read and wrote for it, by phase. What was known already cost none."),
    failures: z.array(Failure).describe("What failed for good; a retry tries exactly these again."),
  })
  .openapi("DocumentDetails");

const Page = z
  .strictObject({
    documents: z.array(Summary),
    next: z.string().optional().describe("Give it as `after` for the next page; there is none on the last."),
  })
  .openapi("DocumentPage");

const Filter = z.strictObject({
  tenant: name("Of one tenant.").optional(),
  collection: name("Of one collection.").optional(),
  seenOn: machine("Whose paths are on one machine.").optional(),
  state: z.enum(DOCUMENT_STATES).optional(),
  ocr: phaseStatus("OCR"),
  vector: phaseStatus("the vector index"),
  graphrag: phaseStatus("GraphRAG"),
  name: z.string().min(1).max(500).optional().describe("Part of the file's name, title or source."),
  limit: z.int().min(1).max(1_000).default(50),
  after: z.string().min(1).max(200).optional().describe("`next` of the page before."),
});

export function addDocumentRoutes(api: Api, { quarry: { documents } }: ApiParts): void {
  api.route(
    {
      method: "get",
      path: "/documents",
      scope: "read",
      tag: TAG,
      summary: "Lists documents, newest first",
      query: Filter,
      answers: { 200: json("A page of them", Page) },
    },
    async ({ query }) => reply(200, await documents.list(query)),
  );
  api.route(
    {
      method: "get",
      path: "/documents/{id}",
      scope: "read",
      tag: TAG,
      summary: "Shows a document: how far it is, what failed and why",
      params: Id,
      answers: { 200: json("The document", Details) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, await documents.show(params.id)),
  );
  api.route(
    {
      method: "delete",
      path: "/documents/{id}",
      scope: "write",
      tag: TAG,
      summary: "Deletes a document and everything that was made of it",
      description: "It can no longer be found when this answers; a worker clears the index afterwards.",
      params: Id,
      answers: { 200: json("It is gone", z.strictObject({ id: z.uuid(), deleted: z.literal(true) })) },
      problems: ["not_found"],
    },
    async ({ params: { id } }) => {
      await documents.delete(id);
      return reply(200, { id, deleted: true } as const);
    },
  );
  api.route(
    {
      method: "post",
      path: "/documents/{id}/retry",
      scope: "write",
      tag: TAG,
      summary: "Tries again what failed, and nothing else",
      params: Id,
      body: z.strictObject({ phase: z.enum(PHASES).optional().describe("Only this one.") }).optional(),
      answers: {
        200: json(
          "What will be tried again",
          z.strictObject({
            id: z.uuid(),
            retried: z.int().describe("How many tasks; 0: nothing had failed."),
          }),
        ),
      },
      problems: ["not_found"],
    },
    async ({ params: { id }, body }) => reply(200, { id, retried: await documents.retry(id, { ...body }) }),
  );
}
