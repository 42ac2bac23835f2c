import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Place } from "./scene.ts";

/** What a process that answers requests is told. */
export interface ServerOrder {
  readonly kind: "quarry" | "bare";
  readonly url: string;
  readonly folder: string;
}

/** A server in a process of its own. */
export interface Serving {
  readonly url: string;
  stop(): Promise<void>;
}

/** Every answer of Quarry's has asked for it; the bare route does not look. */
export const KEY = "bench-key-0123456789";

export async function startServer(kind: ServerOrder["kind"], place: Place): Promise<Serving> {
  const order: ServerOrder = { kind, url: place.url, folder: place.folder };
  const child = start("./server-process.ts", order);
  const url = await answerOf<string>(child);
  return {
    url,
    stop: async () => {
      const ended = once(child, "exit");
      child.send("stop");
      await ended;
    },
  };
}

/** Runs a module of this folder in a process of its own, and gives back the one thing it says. */
export async function runApart<Answer>(module: string, order: object): Promise<Answer> {
  const child = start(module, order);
  const ended = once(child, "exit");
  const answer = await answerOf<Answer>(child);
  await ended;
  return answer;
}

function start(module: string, order: object): ChildProcess {
  return fork(new URL(module, import.meta.url), [JSON.stringify(order)]);
}

function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => resolve(answer as Answer));
    child.once("exit", (code) => reject(new Error(`a process of the benchmark ended early with ${code}`)));
  });
}
