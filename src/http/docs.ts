import { z } from "@hono/zod-openapi";
import type { Api } from "./api.ts";
import { docsPage } from "./docs-page.ts";
import type { OpenApiDocument } from "./openapi.ts";
import { html, PAGE_HEADERS, page } from "./page.ts";
import { json, reply, text } from "./route.ts";

const TAG = "Documentation";
const HTML = "text/html; charset=utf-8";

export function addDocsRoutes(api: Api): void {
  // Made when first asked for: by then every file has added its routes.
  let document: OpenApiDocument | undefined;
  const openApi = () => {
    document ??= api.openApi();
    return document;
  };
  let docs: string | undefined;
  api.route(
    {
      method: "get",
      path: "/",
      scope: "read",
      tag: TAG,
      summary: "A page that leads on",
      answers: { 200: text("The page", HTML) },
    },
    () => reply(200, HOME, PAGE_HEADERS),
  );
  api.route(
    {
      method: "get",
      path: "/docs",
      scope: "read",
      tag: TAG,
      summary: "This documentation, to read",
      answers: { 200: text("The page", HTML) },
    },
    () => {
      docs ??= docsPage(openApi());
      return reply(200, docs, PAGE_HEADERS);
    },
  );
  api.route(
    {
      method: "get",
      path: "/openapi.json",
      scope: "read",
      tag: TAG,
      summary: "This documentation, as OpenAPI 3.1",
      answers: { 200: json("The document", z.looseObject({ openapi: z.string() })) },
    },
    () => reply(200, { ...openApi() }),
  );
}

const HOME = page(
  "Quarry",
  html`<h1>Quarry</h1>
<p>Documents become something you can search and ask.</p>
<ul>
<li><a href="/docs">What this server can be asked</a></li>
<li><a href="/status">How far the work is</a></li>
</ul>`,
);
