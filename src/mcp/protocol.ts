import type { z } from "zod";
import { problemOf } from "../problems.ts";

/** Newest first. What differs between them is what a server may send besides; older clients overlook it. */
export const PROTOCOL_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

export const RPC_CODES = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  busy: -32_000,
  resourceNotFound: -32_002,
} as const;

export type RequestId = string | number;
export type Params = Readonly<Record<string, unknown>>;

export interface RpcRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
}

export type RpcMessage =
  | ({ readonly kind: "request" } & RpcRequest)
  | { readonly kind: "notification"; readonly method: string; readonly params: Params }
  /** Something is answered that was never asked. */
  | { readonly kind: "answer" };

export interface RpcAnswer {
  readonly jsonrpc: "2.0";
  /** Null when the message did not say. */
  readonly id: RequestId | null;
  readonly result?: object;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A message that cannot be answered as asked. What goes wrong inside a tool is a result instead. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: unknown;
  /** Of the message, where it is wrong but says which it is. */
  readonly id: RequestId | null;

  constructor(
    code: keyof typeof RPC_CODES,
    message: string,
    more: { data?: unknown; id?: RequestId | null } = {},
  ) {
    super(message);
    this.code = RPC_CODES[code];
    this.data = more.data;
    this.id = more.id ?? null;
  }
}

export const resultAnswer = (id: RequestId, result: object): RpcAnswer => ({ jsonrpc: "2.0", id, result });

export function errorAnswer(id: RequestId | null, { code, message, data }: RpcError): RpcAnswer {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}

/** The value of a line: one message, or several in a list as one older version of the protocol has it. */
export function parseLine(line: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
  } catch {
    throw new RpcError("parse", "this line is no JSON text in UTF-8: send one message a line");
  }
}

export function readMessage(value: unknown): RpcMessage {
  if (!isRecord(value)) throw new RpcError("invalidRequest", "a message is a JSON object");
  const { jsonrpc, id, method, params } = value;
  const known = isRequestId(id) ? id : null;
  const refuse = (message: string) => new RpcError("invalidRequest", message, { id: known });
  if (jsonrpc !== "2.0") throw refuse('jsonrpc: give "2.0"');
  if (method === undefined && ("result" in value || "error" in value)) return { kind: "answer" };
  if (typeof method !== "string") throw refuse("method: give the name of one");
  if (params !== undefined && !isRecord(params))
    throw new RpcError("invalidParams", "params: give an object", { id: known });
  const message = { method, params: params ?? {} };
  if (id === undefined) return { kind: "notification", ...message };
  if (known === null) throw refuse("id: give a text or a number");
  return { kind: "request", id: known, ...message };
}

export function isRequestId(value: unknown): value is RequestId {
  return typeof value === "string" || typeof value === "number";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const ISSUES_TOLD_MAX = 10;

/** Refuses what does not fit, with the path of each wrong field. */
export function checkedParams<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  at: "params" | "arguments",
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.flatMap(fieldsOf).map(({ path, message }) => ({
    path: [at, ...path].map(String).join("."),
    message,
  }));
  const told = issues.slice(0, ISSUES_TOLD_MAX);
  throw new RpcError("invalidParams", told.map(({ path, message }) => `${path}: ${message}`).join("; "), {
    data: { issues: told },
  });
}

function fieldsOf(issue: z.core.$ZodIssue): { path: PropertyKey[]; message: string }[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path, message: problemOf(issue) }];
  return issue.keys.map((key) => ({
    path: [...issue.path, key.slice(0, 100)],
    message: "there is no such field",
  }));
}
