import { z } from "@hono/zod-openapi";
import { SIGNALS } from "../search/fusion.ts";
import { SEARCH_MODES } from "../search/search.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";
import { Metadata, name } from "./schemas.ts";

const Result = z
  .strictObject({
    chunkId: z.string(),
    documentId: z.uuid(),
    filename: z.string(),
    source: z.string(),
    seenOn: z.string().nullable().describe("The machine whose path the source is, where that is known."),
    title: z.string().nullable(),
    collection: z.string(),
    metadata: Metadata,
    pageNumber: z.int(),
    headingPath: z.array(z.string()),
    content: z.string().describe("The whole passage, in Markdown."),
    snippet: z.string().describe("The part of it that says most about the query, as plain text."),
    highlights: z
      .array(z.array(z.int()).length(2))
      .describe("Where the words of the query stand in the snippet: start and end."),
    score: z.number().describe("Comparable within one answer only."),
    signals: z
      .strictObject(Object.fromEntries(SIGNALS.map((signal) => [signal, z.int().optional()])))
      .describe("The rank that each signal gave it, from 1."),
  })
  .openapi("SearchResult");

const SearchAnswer = z
  .strictObject({
    results: z.array(Result),
    warnings: z.array(z.string()).describe("What could not be asked; the results are what the rest found."),
    tookMs: z.number(),
  })
  .openapi("SearchAnswer");

const Query = z.strictObject({
  q: z.string().trim().min(1).max(10_000).describe("What to look for, in words or as a question."),
  limit: z.int().min(1).max(100).default(10),
  mode: z.enum(SEARCH_MODES).default("hybrid").describe("By meaning, by words, by entities, or all of them."),
  tenant: name("Whose documents.").default("default"),
  collection: name("Only this collection.").optional(),
  document: z
    .array(z.uuid())
    .max(100)
    .optional()
    .describe("Only these documents; may be given several times."),
  metadata: z
    .array(
      z
        .string()
        .max(2_000)
        .regex(/^[^=]{1,200}=/, "give it as key=value"),
    )
    .max(20)
    .optional()
    .describe(
      "Only documents with this, as key=value; may be given several times. Numbers, true, false and null are taken as such.",
    ),
});

export function addSearchRoutes(api: Api, { quarry }: ApiParts): void {
  api.route(
    {
      method: "get",
      path: "/search",
      scope: "read",
      tag: "Search",
      summary: "Finds passages by meaning, by words and by what they are about",
      query: Query,
      answers: { 200: json("What was found, best first", SearchAnswer) },
      problems: ["model_failed", "model_unavailable"],
    },
    async ({ query, signal }) => {
      const { q, document, metadata, collection, ...asked } = query;
      const answer = await quarry.search.search(
        {
          ...asked,
          query: q,
          ...(collection !== undefined && { collection }),
          ...(document && { documentIds: document }),
          ...(metadata && { metadata: Object.fromEntries(metadata.map(entryOf)) }),
        },
        signal,
      );
      return reply(200, answer);
    },
  );
}

/** As on the command line: what looks like a number, true, false or null is one. */
function entryOf(text: string): [string, unknown] {
  const at = text.indexOf("=");
  const value = text.slice(at + 1);
  const isLiteral = /^(true|false|null|-?(0|[1-9]\d{0,14})(\.\d{1,15})?)$/.test(value);
  return [text.slice(0, at), isLiteral ? JSON.parse(value) : value];
}
