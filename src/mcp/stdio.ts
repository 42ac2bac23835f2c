import type { Readable } from "node:stream";
import type { Quarry } from "../app.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { Hands } from "./hands.ts";
import { linesOf } from "./lines.ts";
import { Resources } from "./resources.ts";
import { McpServer } from "./server.ts";
import { allTools } from "./tools.ts";
import { WAIT_MAX_MS } from "./waiting.ts";

/** Every text that add_content takes fits, however much of it JSON has to escape. */
const LINE_BYTES_MAX = 32 * 1_048_576;
/** What was asked before the input ended is still answered; this is longer than a call waits. */
const FINISH_MS = WAIT_MAX_MS + 10_000;
/** After a signal there is little time. */
const HURRY_MS = 1_000;

/** Where messages go, a line each. */
export interface ProtocolOutput {
  write(text: string): void;
  /** When what was written has been taken. Rejects when the signal aborts. */
  drained(signal: AbortSignal): Promise<void>;
}

export interface StdioParts {
  readonly quarry: Quarry;
  readonly input: Readable;
  readonly output: ProtocolOutput;
  readonly log: Log;
  readonly clock: Clock;
  /** Ends it, whether or not the input has ended. */
  readonly stopping: AbortSignal;
}

/** Serves one client until its input ends or it is told to stop. */
export async function serveStdio(parts: StdioParts): Promise<void> {
  const { quarry, log, clock, input, output, stopping } = parts;
  const send = (message: object) => output.write(`${JSON.stringify(message)}\n`);
  const hands = new Hands({
    quarry,
    log,
    onStart: () => server.say("info", "nobody else works on the queue, so this server does"),
  });
  const shared = { quarry, hands, clock };
  const server = new McpServer({ tools: allTools(shared), resources: new Resources(shared), send, log });
  const stop = () => {
    input.destroy();
    server.hurry();
  };
  stopping.addEventListener("abort", stop);
  try {
    await takeAll(server, parts);
    await server.finish(FINISH_MS, stopping);
    // Those that were hurried say how far they are.
    await server.finish(HURRY_MS);
  } finally {
    stopping.removeEventListener("abort", stop);
    await hands.stop();
  }
}

async function takeAll(server: McpServer, { input, output, stopping }: StdioParts): Promise<void> {
  try {
    for await (const line of linesOf(input, { bytesMax: LINE_BYTES_MAX })) {
      server.take(line);
      // Who does not read the answers gets no more of them.
      await output.drained(stopping);
    }
  } catch (error) {
    // An input that was closed from here ends like any other.
    if (!stopping.aborted) throw error;
  }
}
