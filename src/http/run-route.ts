import type { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { hasBody, readJson } from "./body.ts";
import { checked } from "./checks.ts";
import type { ApiContext, ApiEnv } from "./context.ts";
import { unauthorized } from "./guards.ts";
import { readQuery, readTexts } from "./parameters.ts";
import { RefusedRequest } from "./problem.ts";
import type { Answer, Handle, RouteDeclaration, RouteInput } from "./route.ts";

export interface RunParts {
  readonly bodyBytesMax: number;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

interface AnyReply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Runs a declared route for one request: may they, is it right, what comes of it. */
export function runRoute<Route extends RouteDeclaration>(
  route: Route,
  handle: Handle<Route>,
  parts: RunParts,
): Handler<ApiEnv> {
  return async (c) => {
    c.set("route", route.path);
    refuseUnlessAllowed(c, route);
    const input = await readInput(c, route, parts);
    const reply = (await handle(input as RouteInput<Route>)) as AnyReply;
    return responseOf(reply, route.answers[reply.status]!, c, parts);
  };
}

function refuseUnlessAllowed(c: ApiContext, { scope }: RouteDeclaration): void {
  const { scopes } = c.get("caller");
  if (scope === "none" || scopes.has(scope)) return;
  if (scopes.size === 0) throw unauthorized("a key is needed");
  throw new RefusedRequest("forbidden", `this key may not do that: it lacks the scope ${scope}`);
}

async function readInput(
  c: ApiContext,
  route: RouteDeclaration,
  { bodyBytesMax, stopping }: RunParts,
): Promise<RouteInput<RouteDeclaration>> {
  const { raw } = c.req;
  const search = raw.url.slice(raw.url.indexOf("?") + 1 || raw.url.length);
  const ifDeclared = (schema: z.ZodType | undefined, value: unknown) => schema && checked(schema, value);
  return {
    params: ifDeclared(route.params, route.params && readTexts(c.req.param(), route.params)),
    query: ifDeclared(route.query, readQuery(search, route.query)),
    headers: ifDeclared(
      route.headers,
      route.headers && readTexts(headersOf(raw, route.headers), route.headers),
    ),
    body: route.body ? checked(route.body, await readBody(raw, route.body, bodyBytesMax)) : refuseBody(raw),
    caller: c.get("caller"),
    requestId: c.get("requestId"),
    signal: raw.signal,
    stopping,
  } as RouteInput<RouteDeclaration>;
}

async function readBody(request: Request, schema: z.ZodType, bytesMax: number): Promise<unknown> {
  const value = await readJson(request, bytesMax);
  if (value === undefined && !schema.isOptional())
    throw new RefusedRequest("invalid_input", "this needs a body, as content-type: application/json");
  return value;
}

function headersOf(request: Request, schema: z.ZodObject): Record<string, string | undefined> {
  const names = Object.keys(schema.shape);
  return Object.fromEntries(names.map((name) => [name, request.headers.get(name) ?? undefined]));
}

function refuseBody(request: Request): undefined {
  if (hasBody(request))
    throw new RefusedRequest("invalid_input", "this takes no body", { headers: { connection: "close" } });
}

function responseOf(
  { status, body, headers = {} }: AnyReply,
  answer: Answer,
  c: ApiContext,
  parts: RunParts,
): Response {
  const { stopping, log } = parts;
  switch (answer.kind) {
    case "json":
      return new Response(JSON.stringify(body), {
        status,
        headers: { ...headers, "content-type": "application/json" },
      });
    case "text":
      return new Response(body as string, {
        status,
        headers: { ...headers, "content-type": answer.mediaType },
      });
    case "stream": {
      const onError = (error: unknown) =>
        log.error({ requestId: c.get("requestId"), error: messageOf(error) }, "a stream broke off");
      const sent =
        c.req.method === "HEAD" ? null : streamOf(body as AsyncIterable<string>, { stopping, onError });
      return new Response(sent, { status, headers: { ...headers, "content-type": answer.mediaType } });
    }
    case "json or stream": {
      const kind = Symbol.asyncIterator in (body as object) ? "stream" : "json";
      return responseOf({ status, body, headers }, { ...answer, kind }, c, parts);
    }
    case "empty":
      return new Response(null, { status, headers });
    default:
      return answer satisfies never;
  }
}

/** Ends with its source, or when the server stops, whether the source heeds that or not. */
function streamOf(
  parts: AsyncIterable<string>,
  { stopping, onError }: { stopping: AbortSignal; onError: (error: unknown) => void },
): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const stopped = Promise.withResolvers<IteratorResult<string, undefined>>();
  const onStopping = () => stopped.resolve({ done: true, value: undefined });
  if (stopping.aborted) onStopping();
  else stopping.addEventListener("abort", onStopping, { once: true });
  const end = () => {
    stopping.removeEventListener("abort", onStopping);
    // Not awaited: a source that waits for something only ends when that comes.
    iterator.return?.().catch(onError);
  };
  return new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = await Promise.race([iterator.next(), stopped.promise]);
        if (!done) return controller.enqueue(encoder.encode(value));
      } catch (error) {
        // Callers see the end of it; what went wrong is for the log.
        onError(error);
      }
      end();
      controller.close();
    },
    cancel: end,
  });
}

/** Said when the server is put together, not when the first request comes. */
export function checkDeclaration(route: RouteDeclaration, others: readonly RouteDeclaration[]): void {
  const refuse = (problem: string): never => {
    throw new QuarryError("invalid_declaration", `${route.method} ${route.path}: ${problem}`);
  };
  if (others.some(({ method, path }) => method === route.method && path === route.path))
    refuse("is declared twice");
  const named = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const declared = Object.keys(route.params?.shape ?? {});
  if (named.toSorted().join() !== declared.toSorted().join()) refuse("params must be those of the path");
  for (const part of [route.params, route.query, route.body])
    if (isStripping(part)) refuse("say strictObject or looseObject, so that no field is dropped in silence");
}

function isStripping(schema: z.ZodType | undefined): boolean {
  const definition = schema?.def as { type?: string; catchall?: unknown; innerType?: z.ZodType } | undefined;
  if (definition?.type === "optional") return isStripping(definition.innerType);
  return definition?.type === "object" && definition.catchall === undefined;
}
