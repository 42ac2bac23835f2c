import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { z } from "@hono/zod-openapi";
import type { Api } from "../../src/http/api.ts";
import { html } from "../../src/http/page.ts";
import { json, reply } from "../../src/http/route.ts";
import { ERROR_CODES } from "../../src/index.ts";
import { type Serving, serveForTest } from "./serving.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly "x-scope": string;
  readonly security: readonly object[];
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
  }[];
  readonly requestBody?: { readonly content: object };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

describe("the documentation", () => {
  let serving: Serving;
  let document: Document;
  let docs: Response;
  let page: string;
  before(async () => {
    serving = await serveForTest();
    document = (await (await serving.ask("/openapi.json")).json()) as Document;
    docs = await serving.ask("/docs");
    page = await docs.text();
  });
  after(() => serving.close());
  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );

  it("is OpenAPI 3.1 with a title and a version", () => {
    assert.match(document.openapi, /^3\.1\.\d+$/);
    assert.ok(document.info.title);
    assert.match(document.info.version, /^\d+\.\d+\.\d+/);
  });

  it("every reference leads somewhere", () => {
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!);
    assert.ok(refs.length > 0);
    for (const ref of refs) {
      const found = ref
        .replace(/^#\//, "")
        .split("/")
        .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], document);
      assert.ok(found, ref);
    }
  });

  it("every route has a scope, a summary, a tag, an id of its own and all its answers", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
    const tags = document.tags.map(({ name }) => name);
    for (const { path, method, operation } of operations()) {
      const named = `${method} ${path}`;
      assert.ok(["read", "write", "work", "none"].includes(operation["x-scope"]), named);
      assert.equal(operation.security.length > 0, operation["x-scope"] !== "none", named);
      assert.ok(operation.summary.length > 5 && !operation.summary.endsWith("."), named);
      assert.ok(tags.includes(operation.tags[0]!), named);
      const statuses = Object.keys(operation.responses);
      assert.ok(
        statuses.some((status) => status.startsWith("2")),
        named,
      );
      for (const status of ["400", "401", "403", "429", "500", "503"])
        assert.ok(statuses.includes(status), named);
      if (operation.requestBody)
        for (const status of ["413", "415"]) assert.ok(statuses.includes(status), named);
      for (const [status, { description, content }] of Object.entries(operation.responses)) {
        assert.ok(description, `${named} ${status}`);
        if (Number(status) >= 400)
          assert.deepEqual(Object.keys(content!), ["application/problem+json"], named);
      }
    }
  });

  it("parameters of the path are declared and needed", () => {
    for (const { path, operation } of operations()) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      assert.deepEqual(declared.map(({ name }) => name).sort(), named, path);
      assert.ok(
        declared.every(({ required }) => required),
        path,
      );
    }
  });

  it("request bodies say that unknown fields are refused", () => {
    const retry = document.paths["/documents/{id}/retry"]!.post!;
    assert.match(JSON.stringify(retry.requestBody), /"additionalProperties":false/);
  });

  it("the page lists every route and every code, and loads and runs nothing", () => {
    for (const { path, method } of operations())
      assert.ok(page.includes(`<code>${method.toUpperCase()} ${path}</code>`), `${method} ${path}`);
    for (const code of ERROR_CODES) assert.ok(page.includes(`<code>${code}</code>`), code);
    assert.doesNotMatch(page, /<script|<link|<img|<iframe|<form|<base|\son\w+\s*=|javascript:|https?:\/\//i);
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const [, anchor] of page.matchAll(/href="#([^"]+)"/g)) assert.ok(ids.includes(anchor), anchor);
  });

  it("the policy of the page allows its own style sheet and nothing else", async () => {
    const policy = docs.headers.get("content-security-policy")!;
    const style = /<style>(.*?)<\/style>/s.exec(page)![1]!;
    const hash = createHash("sha256").update(style).digest("base64");
    assert.ok(policy.includes(`style-src 'sha256-${hash}';`));
    assert.match(policy, /^default-src 'none';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|script-src/);
    const home = await serving.ask("/");
    assert.equal(home.headers.get("content-security-policy"), policy);
    assert.match(await home.text(), /href="\/docs"/);
  });

  it("what is put into a page is escaped", () => {
    const evil = `<script>"'&`;
    assert.equal(
      html`<p title="${evil}">${[html`<b>${evil}</b>`]}</p>`.text,
      `<p title="&lt;script&gt;&quot;&#39;&amp;"><b>&lt;script&gt;&quot;&#39;&amp;</b></p>`,
    );
  });
});

describe("a declaration", () => {
  const route = { method: "get", scope: "read", tag: "Test", summary: "Test" } as const;
  const answers = { 200: json("Nothing", z.strictObject({})) };
  const wrong: readonly (readonly [name: string, message: RegExp, add: (api: Api) => void])[] = [
    [
      "of a path that is there already",
      /twice/,
      (api) => api.route({ ...route, path: "/health", answers }, () => reply(200, {})),
    ],
    [
      "whose parameters are not those of the path",
      /params/,
      (api) =>
        api.route({ ...route, path: "/x/{id}", params: z.strictObject({ name: z.string() }), answers }, () =>
          reply(200, {}),
        ),
    ],
    [
      "that would drop unknown fields",
      /strictObject/,
      (api) =>
        api.route({ ...route, method: "post", path: "/x", body: z.object({ a: z.string() }), answers }, () =>
          reply(200, {}),
        ),
    ],
  ];
  for (const [name, message, add] of wrong)
    it(`${name} is refused when the server is made`, async () => {
      const serving = serveForTest({ addRoutes: [add] });
      await assert.rejects(serving, { code: "invalid_declaration", message });
    });
});
