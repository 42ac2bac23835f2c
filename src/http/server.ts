import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { atMost } from "../clock.ts";
import type { Settings } from "../config.ts";
import { messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type ApiOptions, createApi } from "./api.ts";
import { isLoopback } from "./hosts.ts";

export interface HttpServerOptions extends Omit<ApiOptions, "stopping"> {
  /** How long running requests may take to be answered when the server stops. */
  readonly graceMs?: number;
  readonly limits?: Partial<typeof LIMITS>;
}

/** Against callers that are slow on purpose. */
const LIMITS = {
  headersMs: 10_000,
  requestMs: 120_000,
  idleKeepAliveMs: 10_000,
  /** Streams send something more often than this. */
  silentMs: 120_000,
  checkEveryMs: 2_000,
  headerBytes: 16_384,
  headers: 100,
  connections: 5_000,
};
const GRACE_DEFAULT_MS = 10_000;

/** The API on a socket, from listening to the last answer. */
export class HttpServer {
  readonly #server: Server;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #graceMs: number;
  readonly #stopping = new AbortController();
  readonly #running = new Set<ServerResponse>();
  #url = "";
  #stopped: Promise<void> | undefined;

  constructor(options: HttpServerOptions) {
    refuseExposure(options.settings);
    this.#settings = options.settings;
    this.#log = options.log;
    this.#graceMs = options.graceMs ?? GRACE_DEFAULT_MS;
    const api = createApi({ ...options, stopping: this.#stopping.signal });
    const listener = getRequestListener(api.fetch, {
      errorHandler: (error) => api.refuse(error),
      // Its own Request and Response would be a fifth faster, but then everything in the process had them.
      overrideGlobalObjects: false,
    });
    this.#server = serverFor({ ...LIMITS, ...options.limits });
    this.#server.on("request", (incoming, outgoing) => {
      this.#watch(outgoing);
      void listener(incoming, outgoing);
    });
  }

  /** Resolves when it listens. */
  async listen(): Promise<this> {
    const { host, port } = this.#settings;
    try {
      this.#server.listen({ host: host.replace(/^\[(.*)\]$/, "$1"), port });
      await once(this.#server, "listening");
    } catch (error) {
      throw notListening(error, { host, port });
    }
    this.#url = urlOf(this.#server.address() as AddressInfo);
    this.#server.on("error", (error) => this.#log.error({ error: messageOf(error) }, "server"));
    return this;
  }

  /** Where it listens, as one would write it in a browser. */
  get url(): string {
    return this.#url;
  }

  /** Takes nothing more, answers what runs, ends streams and long waits, and leaves whoever takes longer than the grace. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#stopping.abort();
    for (const outgoing of this.#running) outgoing.shouldKeepAlive = false;
    this.#server.closeIdleConnections();
    await atMost(this.#graceMs, closed);
    this.#server.closeAllConnections();
    await closed;
  }

  #watch(outgoing: ServerResponse): void {
    this.#running.add(outgoing);
    if (this.#stopping.signal.aborted) outgoing.shouldKeepAlive = false;
    outgoing.once("close", () => {
      this.#running.delete(outgoing);
      // A stream had promised to keep the connection before the server began to stop.
      if (this.#stopping.signal.aborted) setImmediate(() => this.#server.closeIdleConnections());
    });
  }
}

function serverFor(limits: typeof LIMITS): Server {
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleKeepAliveMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    maxHeaderSize: limits.headerBytes,
    // A missing Host is answered as a problem, like all the rest.
    requireHostHeader: false,
  });
  server.maxHeadersCount = limits.headers;
  server.maxConnections = limits.connections;
  server.setTimeout(limits.silentMs);
  return server;
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Everybody on the network could read and delete everything. */
function refuseExposure({ host, apiKey }: Settings): void {
  if (isLoopback(host) || apiKey !== undefined) return;
  throw new QuarryError(
    "invalid_input",
    `${host} can be reached from other machines, and there is no key: set QUARRY_API_KEY, or listen on 127.0.0.1`,
  );
}

function notListening(error: unknown, { host, port }: { host: string; port: number }): QuarryError {
  const { code } = error as NodeJS.ErrnoException;
  const why =
    code === "EADDRINUSE"
      ? "something else listens there; give another port with --port or QUARRY_PORT"
      : `${messageOf(error)}; give another address or port with --host and --port`;
  return new QuarryError("address_unavailable", `cannot listen on ${host}:${port}: ${why}`, { cause: error });
}
