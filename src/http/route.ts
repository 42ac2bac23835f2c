import type { z } from "@hono/zod-openapi";
import type { ErrorCode } from "../errors.ts";
import type { Caller, Scope } from "./keys.ts";

/**
 * A route is declared once. The declaration is what requests are checked against, what /openapi.json says and what
 * /docs shows; nothing about a route stands anywhere else.
 */
export interface RouteDeclaration {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** Names of parameters in braces: `/documents/{id}`. */
  readonly path: `/${string}`;
  /** What a key must allow. "none": open to everybody who can reach the server. */
  readonly scope: Scope | "none";
  /** The heading it stands under in the documentation. */
  readonly tag: string;
  /** One line, as a heading. */
  readonly summary: string;
  readonly description?: string;
  /** Strict objects. Texts of the path and the query become numbers and booleans where the schema wants them. */
  readonly params?: z.ZodObject;
  /** A field that is an array may be given several times; every other one once. */
  readonly query?: z.ZodObject;
  /** Only those named here are read; names in lower case. */
  readonly headers?: z.ZodObject;
  /** JSON. Say strictObject or looseObject, so that unknown fields are not dropped in silence. */
  readonly body?: z.ZodType;
  readonly answers: Answers;
  /** What else it may refuse with. Those that every route can give are added by themselves. */
  readonly problems?: readonly ErrorCode[];
}

export interface JsonAnswer<Schema extends z.ZodType = z.ZodType> {
  readonly kind: "json";
  readonly description: string;
  readonly schema: Schema;
}

export interface TextAnswer {
  readonly kind: "text";
  readonly description: string;
  readonly mediaType: string;
}

/** Parts are sent as they come. It ends when the iterable does, the caller goes or the server stops. */
export interface StreamAnswer {
  readonly kind: "stream";
  readonly description: string;
  readonly mediaType: string;
}

/** JSON, or parts as they come for whoever asks for that media type. */
export interface JsonOrStreamAnswer<Schema extends z.ZodType = z.ZodType> {
  readonly kind: "json or stream";
  readonly description: string;
  readonly schema: Schema;
  readonly mediaType: string;
}

export interface EmptyAnswer {
  readonly kind: "empty";
  readonly description: string;
}

export type Answer = JsonAnswer | TextAnswer | StreamAnswer | JsonOrStreamAnswer | EmptyAnswer;
export type Answers = Readonly<Record<number, Answer>>;

export function json<Schema extends z.ZodType>(description: string, schema: Schema): JsonAnswer<Schema> {
  return { kind: "json", description, schema };
}

export function text(description: string, mediaType: string): TextAnswer {
  return { kind: "text", description, mediaType };
}

export function stream(description: string, mediaType: string): StreamAnswer {
  return { kind: "stream", description, mediaType };
}

export function jsonOrStream<Schema extends z.ZodType>(
  description: string,
  schema: Schema,
  mediaType: string,
): JsonOrStreamAnswer<Schema> {
  return { kind: "json or stream", description, schema, mediaType };
}

export function empty(description: string): EmptyAnswer {
  return { kind: "empty", description };
}

/** What a handler is given: checked values, and who asks. */
export interface RouteInput<Route extends RouteDeclaration> {
  readonly params: Checked<Route, "params">;
  readonly query: Checked<Route, "query">;
  readonly headers: Checked<Route, "headers">;
  readonly body: Checked<Route, "body">;
  readonly caller: Caller;
  readonly requestId: string;
  /** Aborts when the caller has gone, or has to be left because the server's time to stop is over. */
  readonly signal: AbortSignal;
  /** Aborts when the server begins to stop: streams and long waits end then. */
  readonly stopping: AbortSignal;
}

type Checked<Route, Part extends string> =
  Route extends Readonly<Record<Part, infer Schema extends z.ZodType>> ? z.output<Schema> : undefined;

/** One of the declared answers. Problems are thrown, as QuarryError. */
export type Reply<Declared extends Answers> = {
  readonly [Status in keyof Declared]: {
    readonly status: Status;
    readonly body: BodyOf<Declared[Status]>;
    readonly headers?: Readonly<Record<string, string>>;
  };
}[keyof Declared];

export function reply<const Status extends number, Body>(
  status: Status,
  body: Body,
  headers: Readonly<Record<string, string>> = {},
): { readonly status: Status; readonly body: Body; readonly headers: Readonly<Record<string, string>> } {
  return { status, body, headers };
}

type BodyOf<Declared> =
  Declared extends JsonOrStreamAnswer<infer Schema>
    ? Sendable<z.output<Schema>> | AsyncIterable<string>
    : Declared extends JsonAnswer<infer Schema>
      ? Sendable<z.output<Schema>>
      : Declared extends TextAnswer
        ? string
        : Declared extends StreamAnswer
          ? AsyncIterable<string>
          : null;

/** What is only sent may be readonly. */
type Sendable<Value> = Value extends readonly (infer Item)[]
  ? readonly Sendable<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Sendable<Value[Key]> }
    : Value;

export type Handle<Route extends RouteDeclaration> = (
  input: RouteInput<Route>,
) => Reply<Route["answers"]> | Promise<Reply<Route["answers"]>>;

/** Routes as `Api.route` takes them. */
export type AddRoute = <const Route extends RouteDeclaration>(route: Route, handle: Handle<Route>) => void;
