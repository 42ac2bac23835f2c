import { ERROR_CODES, QuarryError } from "../errors.ts";
import type { OpenApiDocument } from "./openapi.ts";
import { type Html, html, page } from "./page.ts";
import { titleOf } from "./problem.ts";

/** The parts of OpenAPI that are shown. */
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly "x-scope": string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly format?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The documentation as a page, made of the same document that /openapi.json answers. */
export function docsPage(document: OpenApiDocument): string {
  const routes = routesOf(document);
  const tags = [...new Set(routes.map(({ operation }) => operation.tags[0]!))];
  const schemas = Object.entries((document.components?.schemas ?? {}) as Record<string, Schema>);
  return page(
    `${document.info.title} API`,
    html`<h1>${document.info.title} ${document.info.version}</h1>
<p>${document.info.description}</p>
<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>
<ul>${routes.map(
      ({ method, path, operation }) =>
        html`<li><a href="#${operation.operationId}"><code>${method.toUpperCase()} ${path}</code></a> ${operation.summary}</li>`,
    )}</ul>
${tags.map(
  (tag) => html`<h2>${tag}</h2>${routes.filter(({ operation }) => operation.tags[0] === tag).map(routeHtml)}`,
)}
<h2>Shapes</h2>
${schemas.map(([name, schema]) => html`<article id="schema-${name}"><h3>${name}</h3>${fieldsHtml(schema)}</article>`)}
<h2>Problems</h2>
<table><tr><th>code</th><th>status</th><th>means</th></tr>${ERROR_CODES.map(
      (code) =>
        html`<tr><td><code>${code}</code></td><td>${new QuarryError(code, "").httpStatus}</td><td>${titleOf(code)}</td></tr>`,
    )}</table>`,
  );
}

function routesOf(document: OpenApiDocument): Described[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, operations]) =>
    Object.entries(operations as Record<string, Operation>).map(([method, operation]) => ({
      method,
      path,
      operation,
    })),
  );
}

function routeHtml({ method, path, operation }: Described): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return html`<article id="${operationId}">
<span class="scope">scope: ${operation["x-scope"]}</span>
<h3><span class="method">${method}</span> <code>${path}</code></h3>
<p>${summary}.${description ? html` ${description}` : ""}</p>
${parameters.length > 0 ? parametersHtml(parameters) : ""}
${requestBody ? html`<h4>Body${requestBody.required ? "" : " (may be left out)"}</h4>${bodyHtml(requestBody.content)}` : ""}
<h4>Answers</h4>
<table>${Object.entries(responses).map(
    ([status, { description: about, content = {} }]) =>
      html`<tr><td>${status}</td><td>${about}</td><td>${contentHtml(content)}</td></tr>`,
  )}</table>
</article>`;
}

function parametersHtml(parameters: readonly Parameter[]): Html {
  return html`<table><tr><th>parameter</th><th>in</th><th>type</th><th>about</th></tr>${parameters.map(
    ({ name, in: place, required, description, schema }) =>
      html`<tr><td><code>${name}</code>${required ? " (needed)" : ""}</td><td>${place}</td><td>${typeHtml(schema)}</td><td>${description ?? schema.description}</td></tr>`,
  )}</table>`;
}

function bodyHtml(content: Content): Html[] {
  return Object.entries(content).map(
    ([mediaType, { schema }]) => html`<p>${mediaType}</p>${fieldsHtml(schema)}`,
  );
}

function contentHtml(content: Content): Html[] {
  return Object.entries(content).map(([mediaType, { schema }]) => html`${mediaType}: ${typeHtml(schema)}`);
}

function fieldsHtml(schema: Schema): Html {
  if (!schema.properties) return html`<p>${typeHtml(schema)} ${schema.description}</p>`;
  const isNeeded = (name: string) => schema.required?.includes(name) ?? false;
  return html`<table><tr><th>field</th><th>type</th><th>about</th></tr>${Object.entries(
    schema.properties,
  ).map(
    ([name, field]) =>
      html`<tr><td><code>${name}</code>${isNeeded(name) ? "" : " (may be absent)"}</td><td>${typeHtml(field)}</td><td>${field.description}</td></tr>`,
  )}</table>`;
}

function typeHtml(schema: Schema): Html {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1)!;
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.items) return html`list of ${typeHtml(schema.items)}`;
  return html`<code>${typeText(schema)}</code>`;
}

function typeText({ type, enum: options, const: only, format, minimum, maximum, ...rest }: Schema): string {
  const kind = options
    ? options.map((option) => JSON.stringify(option)).join(" | ")
    : [type ?? "any"].flat().join(" | ");
  const range = minimum === undefined && maximum === undefined ? "" : ` ${minimum ?? ""}…${maximum ?? ""}`;
  const fallback = rest.default === undefined ? "" : ` = ${JSON.stringify(rest.default)}`;
  return only === undefined
    ? `${kind}${format ? ` (${format})` : ""}${range}${fallback}`
    : JSON.stringify(only);
}
