import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { messageOf } from "../errors.ts";

/** One question to a service and what became of it. Nothing is judged here, and nothing tried again. */
export interface Exchange {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly agent: HttpAgent | HttpsAgent;
  readonly signal: AbortSignal;
  /** For the whole of it, the last byte of the answer included. */
  readonly timeoutMs: number;
  readonly bytesMax: number;
}

export type Reply =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly text: string;
      /** Why the text is not all of it, when it is not. */
      readonly cut: string | undefined;
    }
  | { readonly kind: "timeout"; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/**
 * Sockets stay open between questions. Not the global `fetch`: it gives up by itself after five minutes without a
 * header, and a model on a processor may think longer.
 */
export function agentFor(url: URL): HttpAgent | HttpsAgent {
  return url.protocol === "https:" ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
}

/** Rejects only when the signal aborts, with its reason. */
export async function exchange(asked: Exchange): Promise<Reply> {
  const first = await attempt(asked);
  // The other side may close a socket just as it is used again. That says nothing about the service.
  return first.isStaleSocket ? (await attempt(asked)).reply : first.reply;
}

interface Attempt {
  readonly reply: Reply;
  readonly isStaleSocket: boolean;
}

async function attempt({
  url,
  headers,
  body,
  agent,
  signal,
  timeoutMs,
  bytesMax,
}: Exchange): Promise<Attempt> {
  signal.throwIfAborted();
  const bytes = Buffer.from(body);
  const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
    method: "POST",
    agent,
    headers: {
      "content-type": "application/json",
      accept: "application/json",
      "content-length": bytes.length,
      ...headers,
    },
  });
  let isSent = false;
  let isLate = false;
  const onAbort = () => request.destroy(new Error("aborted"));
  const timer = setTimeout(() => {
    isLate = true;
    request.destroy(new Error("timeout"));
  }, timeoutMs);
  signal.addEventListener("abort", onAbort, { once: true });
  request.once("finish", () => {
    isSent = true;
  });
  const seconds = timeoutMs / 1000;
  try {
    const response = await responseOf(request, bytes);
    const { text, cut } = await textOf(response, bytesMax);
    signal.throwIfAborted();
    if (isLate) return ended({ kind: "timeout", reason: `no whole answer within ${seconds} s` });
    return ended({
      kind: "answer",
      status: response.statusCode ?? 0,
      headers: response.headers,
      text,
      cut,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (isLate && isSent) return ended({ kind: "timeout", reason: `no answer within ${seconds} s` });
    const reason = isLate ? `no connection within ${seconds} s` : reasonOf(error);
    return { reply: { kind: "unreachable", reason }, isStaleSocket: request.reusedSocket && !isLate };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function ended(reply: Reply): Attempt {
  return { reply, isStaleSocket: false };
}

function responseOf(request: ReturnType<typeof httpRequest>, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    // Stays: a socket may break once more after it was given up.
    request.on("error", reject);
    request.end(body);
  });
}

async function textOf(
  response: IncomingMessage,
  bytesMax: number,
): Promise<{ text: string; cut: string | undefined }> {
  const chunks: Buffer[] = [];
  let size = 0;
  let cut: string | undefined;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bytesMax) {
        cut = `it is larger than ${Math.floor(bytesMax / 1024)} kB`;
        break;
      }
      chunks.push(chunk);
    }
  } catch (error) {
    cut = `the connection broke in the middle of it: ${reasonOf(error)}`;
  }
  return { text: Buffer.concat(chunks).toString("utf8"), cut };
}

/** Errors of several tried addresses come with a code and no message. */
function reasonOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return messageOf(error) || (typeof code === "string" ? code : "no reason given");
}
