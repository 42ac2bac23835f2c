import type { Quarry } from "../app.ts";
import { EMBEDDING_QUEUE } from "../embeddings/queue.ts";
import { messageOf } from "../errors.ts";
import { ITEM_LANES } from "../ingest/queue.ts";
import type { Log } from "../log.ts";
import type { Crew } from "../queue/crew.ts";

/** Who does what is in the queue. */
export type Working = { readonly by: "here" | "elsewhere" } | { readonly by: "nobody"; readonly why: string };

/** Clients that end a server wait about two seconds before they kill it. */
const GRACE_MS = 1_000;

/** Does the work in this process while nobody else does. Nothing is loaded before there is something to do. */
export class Hands {
  readonly #quarry: Quarry;
  readonly #log: Log;
  readonly #onStart: () => void;
  #crew: Crew | undefined;
  #looking: Promise<Working> | undefined;
  #isStopped = false;

  constructor({ quarry, log, onStart }: { quarry: Quarry; log: Log; onStart: () => void }) {
    this.#quarry = quarry;
    this.#log = log;
    this.#onStart = onStart;
  }

  /** Who works. Nothing is started. */
  async current(): Promise<Working> {
    if (this.#crew) return { by: "here" };
    if (await this.#isDoneElsewhere()) return { by: "elsewhere" };
    return { by: "nobody", why: "no worker is running; the next add_content or ingest_path starts one here" };
  }

  /** Makes sure that somebody works. */
  needed(): Promise<Working> {
    this.#looking ??= this.#find().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Lets what runs finish if it is quick, and gives the rest back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#looking;
    await this.#crew?.stop();
  }

  async #find(): Promise<Working> {
    if (this.#isStopped) return { by: "nobody", why: "the server is stopping" };
    try {
      if (this.#crew) return { by: "here" };
      if (await this.#isDoneElsewhere()) return { by: "elsewhere" };
      this.#crew = await this.#quarry.work({ graceMs: GRACE_MS });
      this.#onStart();
      return { by: "here" };
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "the work cannot be done here");
      return { by: "nobody", why: messageOf(error) };
    }
  }

  /** Somebody takes part in some of it only, or cannot see the paths of this machine: then the rest is ours. */
  async #isDoneElsewhere(): Promise<boolean> {
    const { machine } = this.#quarry.settings;
    const workers = (await this.#quarry.workers()).filter(({ kind }) => kind === "process");
    const lanes = new Set(
      workers.flatMap(({ host, lanes: own }) =>
        machine === undefined || host === machine ? own : own.filter((lane) => !isItemLane(lane)),
      ),
    );
    return this.#quarry.lanes.names.every((name) => name === EMBEDDING_QUEUE || lanes.has(name));
  }
}

function isItemLane(name: string): boolean {
  return (ITEM_LANES as readonly string[]).includes(name);
}
