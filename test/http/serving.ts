import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/clock.ts";
import type { AddRoutes } from "../../src/http/api.ts";
import { HttpServer, type HttpServerOptions } from "../../src/http/server.ts";
import { createLog, type GivenSettings, openQuarry, type Quarry } from "../../src/index.ts";

export interface ServingOptions {
  readonly settings?: GivenSettings;
  readonly addRoutes?: readonly AddRoutes[];
  readonly limits?: NonNullable<HttpServerOptions["limits"]>;
  readonly graceMs?: number;
  readonly clock?: Clock;
  /** Stands in for what openQuarry gives, or parts of it. */
  readonly quarry?: (quarry: Quarry) => Quarry;
}

export interface Serving {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly quarry: Quarry;
  readonly server: HttpServer;
  /** Lines of the log, newest last. */
  readonly log: string[];
  ask(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

/** The server on a free port, with SQLite in a folder of its own. */
export async function serveForTest(options: ServingOptions = {}): Promise<Serving> {
  const folder = await mkdtemp(join(tmpdir(), "quarry-http-"));
  const opened = await openQuarry({ dataFolder: folder, logLevel: "silent", port: 0, ...options.settings });
  const quarry = options.quarry?.(opened) ?? opened;
  const clean = async () => {
    await opened.close();
    await rm(folder, { recursive: true, force: true });
  };
  const log: string[] = [];
  try {
    const server = await new HttpServer({
      ...options,
      quarry,
      settings: opened.settings,
      log: createLog({ level: "debug", destination: { write: (line) => void log.push(line) } }),
    }).listen();
    return {
      url: server.url,
      port: Number(new URL(server.url).port),
      folder,
      quarry,
      server,
      log,
      ask: (path, init) => fetch(server.url + path, init),
      close: async () => {
        await server.stop();
        await clean();
      },
    };
  } catch (error) {
    await clean();
    throw error;
  }
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends bytes as they are, and reads until the server closes the connection or `until` is seen. */
export function sendRaw(port: number, bytes: string | Buffer, until?: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1" });
    const end = () => {
      socket.destroy();
      resolve(text);
    };
    socket.on("data", (data) => {
      text += data.toString("latin1");
      if (until?.test(text)) end();
    });
    // A server that has heard enough may reset the connection; what it said before counts.
    socket.on("error", end);
    socket.on("close", end);
    socket.write(bytes);
  });
}

/** Answers in what came over a socket, one after the other. */
export function rawAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  while (rest.startsWith("HTTP/1.1 ")) {
    const [head = "", ...more] = rest.split("\r\n\r\n");
    const lines = head.split("\r\n");
    const headers = Object.fromEntries(
      lines.slice(1).map((line) => {
        const at = line.indexOf(":");
        return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
      }),
    );
    const after = more.join("\r\n\r\n");
    const length = Number(headers["content-length"] ?? 0);
    answers.push({ status: Number(lines[0]!.split(" ")[1]), headers, body: after.slice(0, length) });
    rest = after.slice(length);
  }
  return answers;
}
