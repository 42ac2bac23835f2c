import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { parseArgs } from "node:util";
import { openTokenizer } from "../../src/adapters/embed/tokenizer.ts";
import type { Tokenizer } from "../../src/adapters/embed.ts";
import { meaningOf } from "./meaning.ts";
import { type ChatAnswer, type ChatOptions, chatAsOllama, chatAsOpenAi, type Says } from "./model-chat.ts";

/**
 * A model service over real HTTP that speaks as Ollama (`/api/embed`, `/api/chat`, `/api/tags`) and as OpenAI
 * (`/v1/embeddings`, `/v1/chat/completions`) do. Vectors depend on the words of a text and on nothing else; tokens
 * are counted as the model counts them; in a chat it says what the test lets it say. It can be told to misbehave,
 * request by request.
 *
 *     const server = await startModelServer();
 *     server.misbehave({ kind: "status", status: 429, headers: { "retry-after": "5" } }, { kind: "reset" });
 *     … the first request is told to wait, the second loses its connection, the third is answered
 *     await server.close();
 *
 * Also a program: `node test/support/model-server.ts --port 11434 --delay-ms 5` prints its address and runs until
 * it is ended.
 */
export interface ModelServer {
  /** For Ollama. */
  readonly url: string;
  /** For OpenAI: the same with /v1. */
  readonly openAiUrl: string;
  /** What was asked, oldest first; the last `REQUESTS_KEPT` of it. Empty when it keeps none. */
  readonly requests: readonly ModelRequest[];
  /** Of all requests that were answered as asked. */
  readonly answered: { readonly requests: number; readonly texts: number; readonly tokens: number };
  /** One for each of the next requests, in this order. */
  misbehave(...next: Misbehaviour[]): void;
  /** Empties `requests`. */
  forget(): void;
  close(): Promise<void>;
}

export interface ModelRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
  /** The texts, prefixes included; of a chat, its messages. */
  readonly inputs: readonly string[];
  /** Requests of one connection have the same. */
  readonly connection: number;
}

export type Misbehaviour =
  /** An answer as it should be: to let one request pass. */
  | { readonly kind: "none" }
  | { readonly kind: "delay"; readonly ms: number }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** Says nothing, and keeps the connection. */
  | { readonly kind: "hang" }
  /** Breaks the connection before a word is said. */
  | { readonly kind: "reset" }
  /** Breaks it in the middle of the answer. */
  | { readonly kind: "cut off" }
  /** Sends the beginning, and then nothing more. */
  | { readonly kind: "stall" }
  | { readonly kind: "body"; readonly body: string }
  /** Of a chat model. */
  | ({ readonly kind: "says" } & Says)
  | { readonly kind: "wrong dimensions" }
  | { readonly kind: "wrong count" }
  | { readonly kind: "zeros" }
  | { readonly kind: "backwards" };

export interface ModelServerOptions extends ChatOptions {
  readonly port?: number;
  /** Before each answer. */
  readonly delayMs?: number;
  /** Others get 401 at /v1. */
  readonly apiKey?: string;
  /** Besides, or instead of, those that it knows. */
  readonly models?: Readonly<Record<string, ServedModel>>;
  /** Status 400 for each request that has a text with these words in it. */
  readonly refusedWords?: string;
  /** Decides per request, when nothing else was asked for with `misbehave`. Its number begins at 1. */
  readonly misbehave?: (request: ModelRequest, number: number) => Misbehaviour | undefined;
  /** Gives decimals whatever it is asked for, as many services do. */
  readonly hasOnlyFloats?: boolean;
  /** Says nothing of tokens, as many services do. */
  readonly hasNoUsage?: boolean | undefined;
  /** False for long loads: `requests` stays empty. */
  readonly isRecording?: boolean;
}

export interface ServedModel {
  readonly dimensions: number;
  /** A longer text is refused. */
  readonly window: number;
}

const SERVED: Readonly<Record<string, ServedModel>> = {
  "nomic-embed-text": { dimensions: 768, window: 2048 },
  "mxbai-embed-large": { dimensions: 1024, window: 512 },
  "all-minilm": { dimensions: 384, window: 256 },
  "bge-m3": { dimensions: 1024, window: 8192 },
  "text-embedding-3-small": { dimensions: 1536, window: 8192 },
  "text-embedding-3-large": { dimensions: 3072, window: 8192 },
  "text-embedding-ada-002": { dimensions: 1536, window: 8192 },
};

/** As Ollama's models put before and after a text. */
const MARKS = 2;
const TEXTS_MAX = 2048;
const TOKENS_MAX = 300_000;
const REQUESTS_KEPT = 10_000;

export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const state: ServerState = {
    options,
    models: { ...SERVED, ...options.models },
    tokenizers: new Map(),
    connections: new WeakMap(),
    requests: [],
    next: [],
    seen: 0,
    answered: { requests: 0, texts: 0, tokens: 0 },
  };
  const server = createServer((request, response) => {
    answer(state, request, response).catch((error) => {
      // Whoever asked has gone, or the server has a fault of its own that must be seen.
      if (!response.destroyed) send(response, 500, { error: String(error) });
    });
  });
  let connections = 0;
  server.on("connection", (socket) => state.connections.set(socket, ++connections));
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    openAiUrl: `${url}/v1`,
    requests: state.requests,
    answered: state.answered,
    misbehave: (...next) => void state.next.push(...next),
    forget: () => void state.requests.splice(0),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

interface ServerState {
  readonly options: ModelServerOptions;
  readonly models: Readonly<Record<string, ServedModel>>;
  readonly tokenizers: Map<string, Promise<Tokenizer>>;
  readonly connections: WeakMap<Socket, number>;
  readonly requests: ModelRequest[];
  readonly next: Misbehaviour[];
  seen: number;
  readonly answered: { requests: number; texts: number; tokens: number };
}

async function answer(state: ServerState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = new URL(request.url ?? "/", "http://localhost").pathname;
  if (request.method === "GET" && path === "/api/tags")
    return send(response, 200, { models: Object.keys(state.models).map((name) => ({ name, model: name })) });
  const asked = await read(state, request, path);
  const fault = state.next.shift() ?? state.options.misbehave?.(asked, state.seen) ?? { kind: "none" };
  const delayMs = (state.options.delayMs ?? 0) + (fault.kind === "delay" ? fault.ms : 0);
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  if (response.destroyed) return;
  if (fault.kind === "hang") return;
  if (fault.kind === "reset") return void request.socket.resetAndDestroy();
  if (fault.kind === "status") {
    response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
    return void response.end(fault.body ?? JSON.stringify({ error: `scripted ${fault.status}` }));
  }
  if (fault.kind === "body") return void response.end(fault.body);
  if (request.method !== "POST") return send(response, 404, { error: "not found" });
  if (path === "/api/embed") return embedAsOllama(state, asked, { response, fault });
  if (path === "/v1/embeddings") return embedAsOpenAi(state, asked, { response, fault });
  const says = fault.kind === "says" ? fault : undefined;
  if (path === "/api/chat")
    return chat(state, asked, { response, fault }, await chatAsOllama(asked.body, state.options, says));
  if (path === "/v1/chat/completions") {
    if (!isAllowed(state, asked)) return refuse(response, 401, "Incorrect API key provided");
    return chat(state, asked, { response, fault }, await chatAsOpenAi(asked.body, state.options, says));
  }
  return send(response, 404, { error: "not found" });
}

async function read(state: ServerState, request: IncomingMessage, path: string): Promise<ModelRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  const messages = body.messages as { content: string }[] | undefined;
  const input = body.input ?? messages?.map(({ content }) => content);
  const asked: ModelRequest = {
    path,
    headers: request.headers,
    body,
    inputs: Array.isArray(input) ? input.map(String) : input === undefined ? [] : [String(input)],
    connection: state.connections.get(request.socket) ?? 0,
  };
  state.seen++;
  if (state.options.isRecording ?? true) {
    state.requests.push(asked);
    if (state.requests.length > REQUESTS_KEPT) state.requests.shift();
  }
  return asked;
}

interface Answering {
  readonly response: ServerResponse;
  readonly fault: Misbehaviour;
}

async function embedAsOllama(state: ServerState, asked: ModelRequest, { response, fault }: Answering) {
  const name = String(asked.body.model).replace(/:latest$/, "");
  const model = state.models[name];
  if (!model) return send(response, 404, { error: `model "${name}" not found, try pulling it first` });
  const tokens = await tokensOf(state, name, asked.inputs, MARKS);
  if (tokens.some((count) => count > model.window) && asked.body.truncate === false)
    return send(response, 400, { error: "the input length exceeds the context length" });
  if (isRefused(state, asked)) return send(response, 400, { error: "this text is refused" });
  const total = tokens.reduce((sum, count) => sum + count, 0);
  count(state, asked, total);
  sendAnswer(response, fault, {
    model: asked.body.model,
    embeddings: vectorsFor(asked, { model, fault }).map((vector) => [...vector]),
    total_duration: 1,
    load_duration: 1,
    ...(state.options.hasNoUsage ? {} : { prompt_eval_count: total }),
  });
}

async function embedAsOpenAi(state: ServerState, asked: ModelRequest, { response, fault }: Answering) {
  if (!isAllowed(state, asked)) return refuse(response, 401, "Incorrect API key provided");
  const name = String(asked.body.model);
  const model = state.models[name];
  if (!model) return refuse(response, 404, `The model \`${name}\` does not exist`);
  if (asked.inputs.length > TEXTS_MAX)
    return refuse(response, 400, `'input' has more than ${TEXTS_MAX} items`);
  if (asked.inputs.some((text) => text === "")) return refuse(response, 400, "'$.input' is invalid: empty");
  const tokens = await tokensOf(state, name, asked.inputs, 0);
  const total = tokens.reduce((sum, count) => sum + count, 0);
  if (tokens.some((count) => count > model.window))
    return refuse(response, 400, `This model's maximum context length is ${model.window} tokens`);
  if (total > TOKENS_MAX) return refuse(response, 400, `max ${TOKENS_MAX} tokens per request`);
  if (isRefused(state, asked)) return refuse(response, 400, "this text is refused");
  count(state, asked, total);
  const isBase64 = asked.body.encoding_format === "base64" && !state.options.hasOnlyFloats;
  const data = vectorsFor(asked, { model, fault }).map((vector, index) => ({
    object: "embedding",
    index,
    embedding: isBase64 ? asBase64(vector) : [...vector],
  }));
  sendAnswer(response, fault, {
    object: "list",
    model: name,
    data: fault.kind === "backwards" ? data.reverse() : data,
    ...(state.options.hasNoUsage ? {} : { usage: { prompt_tokens: total, total_tokens: total } }),
  });
}

function chat(
  state: ServerState,
  asked: ModelRequest,
  { response, fault }: Answering,
  { status, body, tokens }: ChatAnswer,
): void {
  if (status === 200) {
    count(state, asked, tokens);
    sendAnswer(response, fault, body);
  } else send(response, status, body);
}

function isAllowed({ options }: ServerState, { headers }: ModelRequest): boolean {
  return options.apiKey === undefined || headers.authorization === `Bearer ${options.apiKey}`;
}

function vectorsFor(
  { inputs, body }: ModelRequest,
  { model, fault }: { model: ServedModel; fault: Misbehaviour },
): Float32Array[] {
  const dimensions = typeof body.dimensions === "number" ? body.dimensions : model.dimensions;
  const texts = fault.kind === "wrong count" ? inputs.slice(1) : inputs;
  return texts.map((text) => {
    if (fault.kind === "zeros") return new Float32Array(dimensions);
    return meaningOf(text, fault.kind === "wrong dimensions" ? dimensions - 1 : dimensions);
  });
}

async function tokensOf(
  state: ServerState,
  model: string,
  inputs: readonly string[],
  marks: number,
): Promise<number[]> {
  const opening = state.tokenizers.get(model) ?? openTokenizer(model);
  state.tokenizers.set(model, opening);
  const tokenizer = await opening;
  return inputs.map((text) => tokenizer.count(text) + marks);
}

function isRefused({ options }: ServerState, { inputs }: ModelRequest): boolean {
  const { refusedWords } = options;
  return refusedWords !== undefined && inputs.some((text) => text.includes(refusedWords));
}

function count({ answered }: ServerState, { inputs }: ModelRequest, tokens: number): void {
  answered.requests++;
  answered.texts += inputs.length;
  answered.tokens += tokens;
}

function asBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

function sendAnswer(response: ServerResponse, fault: Misbehaviour, value: unknown): void {
  const isWhole = fault.kind !== "cut off" && fault.kind !== "stall";
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length });
  if (isWhole) response.end(bytes);
  else
    response.write(bytes.subarray(0, bytes.length / 2), () => {
      if (fault.kind === "cut off") response.socket?.destroy();
    });
}

function refuse(response: ServerResponse, status: number, message: string): void {
  send(response, status, { error: { message, type: "invalid_request_error", code: null } });
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "0" },
      "delay-ms": { type: "string", default: "0" },
    },
  });
  const server = await startModelServer({
    port: Number(values.port),
    delayMs: Number(values["delay-ms"]),
    isRecording: false,
  });
  process.stdout.write(`${server.url}\n`);
}

if (import.meta.main) await main();
