import { randomUUID } from "node:crypto";
import { RequestError } from "@hono/node-server";
import { Hono } from "hono";
import type { Quarry } from "../app.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Settings } from "../config.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { addAskRoutes } from "./ask.ts";
import type { ApiContext, ApiEnv } from "./context.ts";
import { addDocsRoutes } from "./docs.ts";
import { addDocumentRoutes } from "./documents.ts";
import { addEmbeddingJobRoutes } from "./embedding-jobs.ts";
import { addEventRoutes } from "./events.ts";
import {
  identified,
  named,
  notTooOften,
  notWhileStopping,
  ourHost,
  ourOrigin,
  plainTarget,
  setHeaders,
  unauthorized,
  watched,
} from "./guards.ts";
import { addHealthRoutes } from "./health.ts";
import { AllowedHosts } from "./hosts.ts";
import { Keys } from "./keys.ts";
import { addLaneRoutes } from "./lanes.ts";
import { addMetricsRoutes } from "./measures.ts";
import { HttpMetrics } from "./metrics.ts";
import { type OpenApiDocument, openApiOf } from "./openapi.ts";
import { problemResponse, RefusedRequest } from "./problem.ts";
import { addQueueItemRoutes } from "./queue-items.ts";
import { addQueueRoutes } from "./queues.ts";
import { addRagJobRoutes } from "./rag-jobs.ts";
import { RateLimit } from "./rate-limit.ts";
import type { AddRoute, Answer, RouteDeclaration } from "./route.ts";
import { checkDeclaration, runRoute } from "./run-route.ts";
import { addSearchRoutes } from "./search.ts";
import { addStatusRoutes } from "./status.ts";
import { addTaskRoutes } from "./tasks.ts";
import { addWorkerRoutes } from "./workers.ts";

/** What routes are built from. */
export interface ApiParts {
  readonly quarry: Quarry;
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: HttpMetrics;
}

/** What a file of routes is handed to add them to. */
export interface Api {
  readonly route: AddRoute;
  /** All routes, once everybody has added theirs. */
  readonly openApi: () => OpenApiDocument;
}

/** A file of routes exports one of these. Of two routes that match a path, the one added first answers. */
export type AddRoutes = (api: Api, parts: ApiParts) => void;

const ROUTES: readonly AddRoutes[] = [
  addHealthRoutes,
  addMetricsRoutes,
  addDocsRoutes,
  addSearchRoutes,
  addAskRoutes,
  addDocumentRoutes,
  addStatusRoutes,
  addLaneRoutes,
  addEmbeddingJobRoutes,
  addWorkerRoutes,
  addQueueRoutes,
  addQueueItemRoutes,
  addRagJobRoutes,
  addTaskRoutes,
  addEventRoutes,
];

export interface ApiOptions {
  readonly quarry: Quarry;
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** Further routes. */
  readonly addRoutes?: readonly AddRoutes[];
  /** Aborts when the server begins to stop. */
  readonly stopping?: AbortSignal;
}

export interface ServedApi {
  readonly fetch: Hono<ApiEnv>["fetch"];
  /** For requests so broken that they never become one. */
  refuse(error: unknown): Response;
}

const WRONG_KEYS_PER_MINUTE = 10;

/** Guards in their order, then the routes. */
export function createApi(options: ApiOptions): ServedApi {
  const { settings, log, clock = systemClock, stopping = new AbortController().signal } = options;
  const hosts = new AllowedHosts(settings.allowedHosts);
  const metrics = new HttpMetrics();
  const routes: RouteDeclaration[] = [];
  const app = new Hono<ApiEnv>();

  app.use(named(settings));
  app.use(watched({ log, clock, metrics }));
  app.use(notWhileStopping(stopping));
  app.use(ourHost(hosts));
  app.use(ourOrigin(hosts, (path) => isPage(routes, path)));
  app.use(plainTarget());
  app.use(
    identified({ keys: new Keys(settings.apiKey), failures: new RateLimit(WRONG_KEYS_PER_MINUTE, clock) }),
  );
  app.use(notTooOften(new RateLimit(settings.rateLimit, clock)));

  const parts: ApiParts = { quarry: options.quarry, settings, log, clock, metrics };
  const bodyBytesMax = settings.bodyMbMax * 1_048_576;
  const api: Api = {
    route: (route, handle) => {
      checkDeclaration(route, routes);
      routes.push(route);
      app.on(
        route.method.toUpperCase(),
        honoPath(route.path),
        runRoute(route, handle, { bodyBytesMax, stopping, log }),
      );
    },
    openApi: () => openApiOf(routes),
  };
  for (const add of [...ROUTES, ...(options.addRoutes ?? [])]) add(api, parts);

  app.notFound((c) => answerUnrouted(c, routes));
  app.onError((error, c) => {
    report(log, error, c);
    return problemResponse(error, c.get("requestId"));
  });
  return { fetch: app.fetch, refuse: (error) => refuseBroken(log, error) };
}

/** `/documents/{id}` → `/documents/:id` */
function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

function isPage(routes: readonly RouteDeclaration[], path: string): boolean {
  return routes.some(
    (route) => route.path === path && Object.values(route.answers).some((answer) => isHtml(answer)),
  );
}

function isHtml(answer: Answer): boolean {
  return answer.kind === "text" && answer.mediaType.startsWith("text/html");
}

/** OPTIONS, another method than the path has, or nothing of ours. Strangers are not told which. */
function answerUnrouted(c: ApiContext, routes: readonly RouteDeclaration[]): Response {
  if (c.get("caller").scopes.size === 0) throw unauthorized("a key is needed");
  const methods = methodsOf(routes, c.req.path);
  if (methods.length === 0) throw new QuarryError("not_found", "there is nothing at this path; see /docs");
  const allow = methods.join(", ");
  if (c.req.method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
  throw new RefusedRequest("method_not_allowed", `this path takes ${allow}`, { headers: { allow } });
}

function methodsOf(routes: readonly RouteDeclaration[], path: string): string[] {
  const matching = routes.filter((route) => pathPattern(route.path).test(path));
  const methods = new Set(matching.map(({ method }) => method.toUpperCase()));
  if (methods.size === 0) return [];
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods.add("OPTIONS")].toSorted();
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
}

/** Refusals stand in the request's own line; only what went wrong here needs a second one. */
function report(log: Log, error: unknown, c: ApiContext): void {
  if (isQuarryError(error) && error.httpStatus < 500) return;
  const requestId = c.get("requestId");
  // Whoever has gone does not wait for an answer, and what stops because of it has not failed.
  if (c.req.raw.signal.aborted) {
    log.debug({ requestId }, "the caller has gone");
    return;
  }
  log.error(
    { requestId, error: messageOf(error), stack: error instanceof Error ? error.stack : undefined },
    "failed",
  );
}

function refuseBroken(log: Log, error: unknown): Response {
  const requestId = randomUUID();
  const isTheirs = error instanceof RequestError;
  if (isTheirs) log.info({ requestId }, "broken request");
  else log.error({ requestId, error: messageOf(error) }, "failed");
  const refused = new QuarryError(
    "invalid_input",
    "a request needs a valid target and exactly one Host header",
  );
  const response = problemResponse(isTheirs ? refused : error, requestId);
  setHeaders(response.headers, requestId);
  return response;
}
