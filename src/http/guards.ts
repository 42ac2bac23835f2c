import { randomUUID } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import type { Clock } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type ApiContext, type ApiEnv, UNMATCHED } from "./context.ts";
import { type AllowedHosts, checkFetchSite, type Peer } from "./hosts.ts";
import { type Keys, SCOPES } from "./keys.ts";
import type { HttpMetrics } from "./metrics.ts";
import { RefusedRequest } from "./problem.ts";
import { addressName, type RateLimit } from "./rate-limit.ts";

type Guard = MiddlewareHandler<ApiEnv>;

const REQUEST_ID = /^[\w.-]{1,64}$/;
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** Gives the request its id, and the answer the headers that every answer has. A route may set its own instead. */
export function named(address: { host: string; port: number }): Guard {
  return async (c, next) => {
    const given = c.req.header("x-request-id") ?? "";
    const requestId = REQUEST_ID.test(given) ? given : randomUUID();
    c.set("requestId", requestId);
    c.set("route", UNMATCHED);
    c.set("peer", peerOf(c, address));
    await next();
    setHeaders(c.res.headers, requestId);
  };
}

export function setHeaders(headers: Headers, requestId: string): void {
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value);
  headers.set("x-request-id", requestId);
}

/** One line and one count for each request. Paths, queries and headers are never logged: people put secrets there. */
export function watched({ log, clock, metrics }: { log: Log; clock: Clock; metrics: HttpMetrics }): Guard {
  return async (c, next) => {
    const startedAt = clock.monotonic();
    await next();
    const tookMs = clock.monotonic() - startedAt;
    const { method } = c.req;
    const { status } = c.res;
    const route = c.get("route");
    metrics.count({ method, route, status, tookMs });
    const ms = Math.round(tookMs * 10) / 10;
    log.info(
      { requestId: c.get("requestId"), method, route, status, ms, key: c.get("caller")?.name },
      "request",
    );
  };
}

export function notWhileStopping(stopping: AbortSignal): Guard {
  return async (_c, next) => {
    if (stopping.aborted) throw new QuarryError("shutting_down", "the server is stopping");
    await next();
  };
}

export function ourHost(hosts: AllowedHosts): Guard {
  return async (c, next) => {
    hosts.check(c.req.raw.headers.get("host"), c.get("peer"));
    await next();
  };
}

export function ourOrigin(hosts: AllowedHosts, isPage: (path: string) => boolean): Guard {
  return async (c, next) => {
    const { headers } = c.req.raw;
    hosts.checkOrigin(headers.get("origin"), headers.get("host") ?? "", c.get("peer"));
    checkFetchSite(headers, c.req.method === "GET" && isPage(c.req.path));
    await next();
  };
}

/** Paths that mean one thing to a proxy and another to us are refused rather than tidied up. */
export function plainTarget(): Guard {
  return async (c, next) => {
    const { incoming } = c.env ?? {};
    if (incoming && incoming.httpVersionMajor < 1)
      throw new RefusedRequest("invalid_input", "ask by HTTP/1.1; this is older");
    const path = (incoming?.url ?? new URL(c.req.url).pathname).split("?", 1)[0]!;
    const problem = problemOfPath(path);
    if (problem) throw new RefusedRequest("invalid_input", `the path ${problem}`);
    await next();
  };
}

function problemOfPath(path: string): string | undefined {
  if (!path.startsWith("/")) return "must begin with /";
  if (path.includes("//")) return "has an empty part";
  if (/[\\#]|%2f|%5c|%00/i.test(path)) return "has a character that is not allowed in it";
  if (/(^|\/)(\.|%2e){1,2}(\/|$)/i.test(path)) return "has a part of dots";
  try {
    decodeURIComponent(path);
  } catch {
    return "has a % that is not followed by a UTF-8 character";
  }
  return undefined;
}

/** Finds out who asks. Whether they may is up to each route. */
export function identified({ keys, failures }: { keys: Keys; failures: RateLimit }): Guard {
  return async (c, next) => {
    const address = addressName(c.get("peer").remoteAddress);
    const presented = keys.areWanted ? presentedKey(c.req.raw.headers) : undefined;
    if (!keys.areWanted) c.set("caller", { name: address, scopes: new Set(SCOPES) });
    else if (presented === undefined) c.set("caller", { name: address, scopes: new Set() });
    else {
      // Before the key is looked at, or guesses would go on being answered.
      refuseFor(failures.wait(address), "too many wrong keys came from this address");
      const caller = keys.find(presented);
      if (!caller) failures.take(address);
      if (!caller) throw unauthorized("this key is not known here");
      c.set("caller", caller);
    }
    await next();
  };
}

export function notTooOften(limit: RateLimit): Guard {
  return async (c, next) => {
    refuseFor(limit.take(c.get("caller").name), "too many requests");
    await next();
  };
}

export function unauthorized(problem: string): RefusedRequest {
  return new RefusedRequest(
    "unauthorized",
    `${problem}; send a key of QUARRY_API_KEY as Authorization: Bearer KEY or as x-api-key: KEY`,
    { headers: { "www-authenticate": 'Bearer realm="quarry"' } },
  );
}

function refuseFor(waitSeconds: number, problem: string): void {
  if (waitSeconds === 0) return;
  const headers = { "retry-after": String(waitSeconds) };
  throw new RefusedRequest("rate_limited", `${problem}; try again in ${waitSeconds} s`, { headers });
}

function presentedKey(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  const apiKey = headers.get("x-api-key");
  if (authorization === null) return apiKey ?? undefined;
  if (apiKey !== null) throw unauthorized("two keys were sent");
  const [, key] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (key === undefined) throw unauthorized("the Authorization header holds no Bearer key");
  return key;
}

function peerOf(c: ApiContext, { host, port }: { host: string; port: number }): Peer {
  const socket = c.env?.incoming?.socket;
  return {
    remoteAddress: socket?.remoteAddress ?? "in-process",
    localAddress: socket?.localAddress ?? host,
    localPort: socket?.localPort ?? port,
  };
}
