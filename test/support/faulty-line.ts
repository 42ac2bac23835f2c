import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What becomes of a request: as usual; refused with a status and words; lost before or after the server has done it; the answer cut in half; no answer at all. */
export type Fault =
  | "none"
  | { readonly status: number; readonly body: string }
  | "lost before"
  | "lost after"
  | "cut answer"
  | "silence";

export interface FaultyLine {
  readonly url: string;
  /** Asked for each request. */
  decide: (request: { method: string; path: string }) => Fault;
  /** `PUT /bucket/key?…`, in their order. */
  readonly seen: string[];
  close(): Promise<void>;
}

/** A line to an HTTP server on which anything may happen to a request or its answer. */
export async function faultyLine(target: string): Promise<FaultyLine> {
  const to = new URL(target);
  const server = createServer(async (asked, answer) => {
    const { method = "GET", url: path = "/" } = asked;
    line.seen.push(`${method} ${path}`);
    const fault = line.decide({ method, path });
    const body = Buffer.concat(await asked.toArray());
    if (fault === "silence") return;
    if (fault === "lost before") return void asked.socket.destroy();
    if (typeof fault === "object") return void answer.writeHead(fault.status).end(fault.body);
    await handOn(to, { asked, answer, body, fault });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const line: FaultyLine = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    decide: () => "none",
    seen: [],
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return line;
}

async function handOn(
  { hostname, port }: URL,
  given: { asked: IncomingMessage; answer: ServerResponse; body: Buffer; fault: Fault },
): Promise<void> {
  const { asked, answer, body, fault } = given;
  const { method, url: path, headers } = asked;
  // The signature covers the name of the host that was asked: it goes along unchanged.
  const onward = request({ hostname, port, ...(method && { method }), ...(path && { path }), headers });
  onward.end(body);
  const [reply] = (await once(onward, "response")) as [IncomingMessage];
  const bytes = Buffer.concat(await reply.toArray());
  if (fault === "lost after") return void asked.socket.destroy();
  answer.writeHead(reply.statusCode ?? 500, reply.headers);
  if (fault !== "cut answer") return void answer.end(bytes);
  answer.write(bytes.subarray(0, bytes.length / 2), () => asked.socket.destroy());
}
