import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { KEY } from "./serving.ts";

/** Asks one server over connections that are kept. */
export class Client {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get(path: string): Promise<unknown> {
    return this.#ask("GET", path);
  }

  post(path: string, body: unknown): Promise<unknown> {
    return this.#ask("POST", path, JSON.stringify(body));
  }

  close(): void {
    this.#agent.destroy();
  }

  /** A refusal ends the benchmark: it would be quicker than an answer. */
  #ask(method: string, path: string, body?: string): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const headers: Record<string, string | number> = { authorization: `Bearer ${KEY}` };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(body);
    }
    const asked = request(this.#url + path, { agent: this.#agent, method, headers });
    asked.once("error", reject);
    asked.once("response", async (response) => {
      const answer = await text(response).catch(reject);
      if (typeof answer !== "string") return;
      const { statusCode = 0 } = response;
      if (statusCode < 300) resolve(JSON.parse(answer));
      else reject(new Error(`${method} ${path} was answered ${statusCode}: ${answer}`));
    });
    asked.end(body);
    return promise;
  }
}
