import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const BIN = join(import.meta.dirname, "../../bin/quarry.js");
const ENV = { DATABASE_URL: "", QUARRY_DATA: "", QUARRY_LOG: "error", WORKER_POLL_INTERVAL: "0.5" };

export interface TestFolder {
  readonly path: string;
  /** The data folder in it. */
  readonly data: string;
  remove(): Promise<void>;
}

export async function makeFolder(): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), "quarry-mcp-"));
  return { path, data: join(path, "data"), remove: () => rm(path, { recursive: true, force: true }) };
}

/** The official client on the real command. */
export async function connect(data: string, env: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, "mcp", "--data", data],
    env: { ...ENV, ...env },
  });
  await client.connect(transport);
  // It then checks every structured answer against the schema of its tool.
  await client.listTools();
  return client;
}

export interface Called {
  readonly text: string;
  readonly isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: each tool answers with a shape of its own, which the client has checked.
  readonly structured: any;
}

export async function call(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Called> {
  return calledOf(await client.callTool({ name, arguments: args }));
}

export function calledOf(result: Awaited<ReturnType<Client["callTool"]>>): Called {
  const [content] = result.content as { type: string; text: string }[];
  return {
    text: content!.text,
    isError: result.isError === true,
    structured: result.structuredContent,
  };
}

export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: string | number | null;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server says.
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** The command with bare pipes, for what no client would send. */
export class RawServer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown[]>;
  #out = "";
  err = "";

  constructor(data: string, env: Record<string, string> = {}, { isReading = true } = {}) {
    this.#child = spawn(process.execPath, [BIN, "mcp", "--data", data], {
      env: { ...process.env, ...ENV, ...env },
    });
    this.#closed = once(this.#child, "close");
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.on("data", (bytes) => {
      this.err += bytes;
    });
    if (isReading) this.read();
  }

  read(): void {
    this.#child.stdout.setEncoding("utf8").on("data", (text) => {
      this.#out += text;
    });
  }

  /** Everything it said, a message a line. Throws when a line is something else. */
  get messages(): Message[] {
    return this.#out
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }

  send(message: unknown): void {
    this.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  }

  write(bytes: string | Uint8Array): void {
    this.#child.stdin.write(bytes);
  }

  request(id: string | number, method: string, params?: object): void {
    this.send({ jsonrpc: "2.0", id, method, ...(params && { params }) });
  }

  async answerTo(id: string | number | null): Promise<Message> {
    return this.until((messages) => messages.find((message) => message.id === id && !message.method));
  }

  async until<T>(find: (messages: Message[]) => T | undefined): Promise<T> {
    for (;;) {
      const found = find(this.messages);
      if (found !== undefined) return found;
      if (this.#child.exitCode !== null) throw new Error(`it ended: ${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  stopReading(): void {
    this.#child.stdout.destroy();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const [code, signal] = (await this.#closed) as [number | null, NodeJS.Signals | null];
    return { code, signal };
  }
}
