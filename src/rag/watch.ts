import { pause } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { JOB_LEVELS, RESERVED_RAG_IDS } from "./queue.ts";
import { KEYS } from "./redis-keys.ts";
import { RedisLink } from "./redis-link.ts";

const TRY_AGAIN_MS = 2_000;
/** Lists that nobody configured are served too, but not without end. */
const FOUND_MAX = 1_000;
const SCANNED_AT_ONCE = 1_000;
const SCANS_MAX = 10;

/**
 * Which lists there are, and that something was pushed to one. Redis itself says so (`CLIENT TRACKING` by prefix), of every
 * list and whoever pushed, and nothing is taken from a list to find out: a worker that dies here has lost nothing.
 */
export class Watch {
  readonly #settings: { readonly url: string; readonly log: Log };
  /** For looking through all keys. */
  readonly #link: RedisLink;
  readonly #configured: readonly string[];
  readonly #found = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #tracking: RedisLink | undefined;
  #stopping = new AbortController();
  #cursor = "0";

  constructor(settings: { url: string; log: Log; link: RedisLink; ragIds: readonly string[] }) {
    this.#settings = settings;
    this.#link = settings.link;
    this.#configured = settings.ragIds;
  }

  /** In the order that decides between equals. A list of a RAG that nobody knows is served: its jobs fail and say why. */
  get lines(): string[] {
    return ["high", "", "normal", ...this.#configured, ...this.#found, "low"];
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (!this.#tracking) {
      this.#stopping = new AbortController();
      void this.#track(this.#stopping.signal);
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) void this.close();
    };
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    const tracking = this.#tracking;
    this.#tracking = undefined;
    await tracking?.close();
  }

  /** Looks for lists to which something was pushed while nobody watched; a part of all keys at a time. */
  async findLines(): Promise<void> {
    for (let scans = 0; scans < SCANS_MAX; scans++) {
      const options = ["MATCH", `${KEYS.queue}:*`, "COUNT", String(SCANNED_AT_ONCE), "TYPE", "list"];
      const [cursor, keys] = (await this.#link.command("SCAN", this.#cursor, ...options)) as [
        string,
        string[],
      ];
      this.#cursor = cursor;
      for (const key of keys) this.#notice(key);
      if (cursor === "0") return;
    }
  }

  async #track(signal: AbortSignal): Promise<void> {
    const { url, log } = this.#settings;
    const tracking = new RedisLink({
      url,
      log,
      onReady: () => void this.#ask(tracking),
      onChanged: (key) => {
        if (key === KEYS.deadLetter) return;
        if (key !== null) this.#notice(key);
        this.#wake();
      },
    });
    this.#tracking = tracking;
    while (!signal.aborted) {
      try {
        await tracking.open();
        return;
      } catch (error) {
        log.debug({ error: messageOf(error) }, "redis cannot be watched yet");
        await pause(TRY_AGAIN_MS, signal);
      }
    }
  }

  /** On every connection anew; what was pushed before it stood is looked for once. */
  async #ask(tracking: RedisLink): Promise<void> {
    try {
      await tracking.command("CLIENT", "TRACKING", "OFF");
      await tracking.command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", KEYS.queue);
    } catch (error) {
      this.#settings.log.warn(
        { error: messageOf(error) },
        "redis sends no wake-ups; jobs wait for the next poll",
      );
    }
    this.#wake();
  }

  #notice(key: string): void {
    const line = key.slice(KEYS.queue.length + 1);
    const isKnown = [...JOB_LEVELS, ...RESERVED_RAG_IDS, ...this.#configured].includes(line as never);
    if (line !== "" && !isKnown && this.#found.size < FOUND_MAX) this.#found.add(line);
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }
}
