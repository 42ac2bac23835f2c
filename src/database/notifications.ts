import type pg from "pg";
import { atMost, pause } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import { literal } from "./dialect.ts";
import { Topics } from "./topics.ts";

/** At most one NOTIFY per topic in this time: NOTIFY takes a lock that all committers share. */
export const NOTIFY_EVERY_MS = 25;
const CHECK_EVERY_MS = 15_000;
const CHECK_TIMEOUT_MS = 5_000;
const RECONNECT_MAX_MS = 5_000;
const END_TIMEOUT_MS = 1_000;

interface NotificationSettings {
  connect(): pg.Client;
  send(topic: string): Promise<unknown>;
  onError(error: unknown): void;
}

/**
 * Wake-ups over LISTEN / NOTIFY. A listening connection can die in silence, so it is asked a question now and
 * then and replaced when it does not answer. Nothing depends on it: a lost wake-up costs one poll.
 */
export class PostgresNotifications {
  static readonly channel = "quarry";

  readonly #settings: NotificationSettings;
  readonly #topics = new Topics();
  readonly #cooling = new Map<string, { again: boolean }>();
  readonly #stopping = new AbortController();
  #listening: Promise<void> | undefined;

  constructor(settings: NotificationSettings) {
    this.#settings = settings;
  }

  /** The first of a burst goes out at once, the rest of it as one more when the pause is over. */
  notify(topic: string, { isSent }: { isSent: boolean }): void {
    this.#topics.fire(topic);
    if (isSent) return;
    const cooling = this.#cooling.get(topic);
    if (cooling) {
      cooling.again = true;
      return;
    }
    this.#send(topic);
  }

  /** The caller's own statement sends it. */
  notice(topic: string): string | undefined {
    if (this.#cooling.has(topic)) return undefined;
    this.#cool(topic);
    return `(select pg_notify(${literal(PostgresNotifications.channel)}, ${literal(topic)}))`;
  }

  subscribe(topic: string, listener: () => void): () => void {
    this.#listening ??= this.#listen();
    return this.#topics.add(topic, listener);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#listening;
  }

  #send(topic: string): void {
    this.#cool(topic);
    this.#settings.send(topic).catch((error) => this.#settings.onError(error));
  }

  #cool(topic: string): void {
    const state = { again: false };
    this.#cooling.set(topic, state);
    setTimeout(() => {
      this.#cooling.delete(topic);
      if (state.again && !this.#stopping.signal.aborted) this.#send(topic);
    }, NOTIFY_EVERY_MS).unref();
  }

  async #listen(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures++) {
      let client: pg.Client | undefined;
      try {
        client = this.#settings.connect();
        // From the first moment on: a connection that breaks while nobody listens would end the process.
        client.on("error", () => undefined);
        await client.connect();
        await client.query(`listen ${PostgresNotifications.channel}`);
        client.on("notification", ({ payload }) => this.#topics.fire(payload ?? ""));
        failures = 0;
        // What was notified while nobody listened is found by looking once.
        this.#topics.fireAll();
        await this.#untilBroken(client);
      } catch (error) {
        if (!signal.aborted) this.#settings.onError(error);
      }
      // Half-open, it never says goodbye.
      await atMost(
        END_TIMEOUT_MS,
        client?.end().catch(() => undefined),
      );
      if (!signal.aborted) await pause(Math.min(RECONNECT_MAX_MS, 50 * 2 ** failures), signal);
    }
  }

  async #untilBroken(client: pg.Client): Promise<void> {
    const { signal } = this.#stopping;
    const broken = new AbortController();
    client.on("error", (error) => broken.abort(error));
    client.on("end", () =>
      broken.abort(new QuarryError("database_unavailable", "the listening connection ended")),
    );
    while (!signal.aborted) {
      await pause(CHECK_EVERY_MS, AbortSignal.any([signal, broken.signal]));
      if (signal.aborted) return;
      broken.signal.throwIfAborted();
      await answersInTime(client);
    }
  }
}

async function answersInTime(client: pg.Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("the listening connection does not answer")), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([client.query("select 1"), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
