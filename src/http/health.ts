import { z } from "@hono/zod-openapi";
import type { Readiness } from "../readiness.ts";
import type { Api, ApiParts } from "./api.ts";
import { RefusedRequest } from "./problem.ts";
import { json, reply } from "./route.ts";

const TAG = "Health";
const Ready = z
  .strictObject({
    isReady: z.literal(true),
    checks: z.array(z.string()).optional().describe("What was looked at; only for keys that may read."),
  })
  .openapi("Ready");

export function addHealthRoutes(api: Api, { quarry }: ApiParts): void {
  api.route(
    {
      method: "get",
      path: "/health",
      scope: "none",
      tag: TAG,
      summary: "Says that the process runs",
      answers: { 200: json("It runs", z.strictObject({ status: z.literal("ok") })) },
    },
    () => reply(200, { status: "ok" } as const),
  );
  api.route(
    {
      method: "get",
      path: "/ready",
      scope: "none",
      tag: TAG,
      summary: "Says whether work handed in now would be kept",
      description:
        "The database answers and the disk has room. A key that may read is also told what is wrong.",
      answers: { 200: json("It is ready", Ready) },
      problems: ["disk_full", "store_unavailable", "resource_exhausted"],
    },
    async ({ caller }) => {
      const readiness = await quarry.readiness();
      const isTold = caller.scopes.has("read");
      if (!readiness.isReady) throw notReady(readiness, isTold);
      const checks = readiness.checks.map(({ name }) => name);
      return reply(200, { isReady: true, ...(isTold && { checks }) } as const);
    },
  );
}

function notReady({ checks }: Readiness, isTold: boolean): RefusedRequest {
  const failing = checks.filter(({ isOk }) => !isOk);
  const code = failing[0]?.code ?? "resource_exhausted";
  const errors = failing.map(({ name, problem = "does not work" }) => ({ path: name, message: problem }));
  return new RefusedRequest(code, "not ready", isTold ? { errors } : {});
}
