import { OpenAPIHono } from "@hono/zod-openapi";
import { type ErrorCode, QuarryError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { PROBLEM_TYPE, ProblemSchema, titleOf } from "./problem.ts";
import type { Answer, RouteDeclaration } from "./route.ts";

export type OpenApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;
type Registered = Parameters<OpenAPIHono["openAPIRegistry"]["registerPath"]>[0];

const ABOUT = `Errors are answered as ${PROBLEM_TYPE}; their \`code\` is for programs. Every answer has the request's id in \`x-request-id\`. Keys are those of QUARRY_API_KEY; \`x-scope\` says what a key must allow. Unknown parameters and fields are refused.`;

/** What the declarations say, as OpenAPI 3.1. */
export function openApiOf(routes: readonly RouteDeclaration[]): OpenApiDocument {
  const app = new OpenAPIHono();
  const { openAPIRegistry: registry } = app;
  registry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  registry.registerComponent("securitySchemes", "apiKey", {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
  });
  for (const route of routes) registry.registerPath(operationOf(route));
  return app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Quarry",
      version: VERSION,
      description: ABOUT,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
  } as Parameters<OpenAPIHono["getOpenAPI31Document"]>[0]);
}

function operationOf(route: RouteDeclaration): Registered {
  const { method, path, scope, tag, summary, description, params, query, headers, body, answers } = route;
  return {
    method,
    path,
    operationId: operationIdOf(route),
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: scope === "none" ? [] : [{ bearer: [] }, { apiKey: [] }],
    "x-scope": scope,
    request: {
      ...(params && { params }),
      ...(query && { query }),
      ...(headers && { headers }),
      ...(body && {
        body: { required: !body.isOptional(), content: { "application/json": { schema: body } } },
      }),
    },
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
      ...problemsOf(route),
    },
  };
}

function responseOf(answer: Answer): Registered["responses"][number] {
  const { description } = answer;
  switch (answer.kind) {
    case "json":
      return { description, content: { "application/json": { schema: answer.schema } } };
    case "json or stream":
      return {
        description,
        content: {
          "application/json": { schema: answer.schema },
          [answer.mediaType]: { schema: { type: "string" } },
        },
      };
    case "text":
    case "stream": {
      const mediaType = answer.mediaType.split(";", 1)[0]!;
      return { description, content: { [mediaType]: { schema: { type: "string" } } } };
    }
    case "empty":
      return { description };
    default:
      return answer satisfies never;
  }
}

/** Refusals by status, each with the codes that it may have. */
function problemsOf(route: RouteDeclaration): Registered["responses"] {
  const codes = new Set<ErrorCode>([
    "invalid_input",
    "forbidden",
    "rate_limited",
    "internal",
    "shutting_down",
    "database_unavailable",
    "unauthorized",
    ...(route.body ? (["request_too_large", "request_unsupported"] as const) : []),
    ...(route.problems ?? []),
  ]);
  const byStatus = Map.groupBy(codes, (code) => new QuarryError(code, "").httpStatus);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      String(status),
      {
        description: group.map((code) => `${titleOf(code)} (\`${code}\`)`).join(", "),
        content: { [PROBLEM_TYPE]: { schema: ProblemSchema } },
      },
    ]),
  );
}

/** get /documents/{id} → getDocumentsById */
function operationIdOf({ method, path }: RouteDeclaration): string {
  const words = path.split(/[^A-Za-z0-9{]+/).filter(Boolean);
  const named = words.map((word) => (word.startsWith("{") ? `By${capital(word.slice(1))}` : capital(word)));
  return method + (named.join("") || "Home");
}

function capital(word: string): string {
  return word[0]!.toUpperCase() + word.slice(1);
}
