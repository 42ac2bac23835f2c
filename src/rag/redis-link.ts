import { createHash } from "node:crypto";
import { createClient, ErrorReply } from "@redis/client";
import { messageOf, QuarryError } from "../errors.ts";
import { hideSecrets, type Log } from "../log.ts";

/** Lua that the server runs as one step. It is sent once and called by its digest from then on. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly digest: string;
}

/** `allow-oom`: also while the server has no memory left. `no-writes`: only looks. */
export function defineScript(name: string, flags: "" | "allow-oom" | "no-writes", body: string): Script {
  const lua = `#!lua${flags === "" ? "" : ` flags=${flags}`}\n${body}`;
  return { name, lua, digest: createHash("sha1").update(lua).digest("hex") };
}

const CONNECT_WITHIN_MS = 5_000;
/** A connection that is dead without saying so is noticed after two of these. */
const PING_EVERY_MS = 15_000;
const RETRY_MAX_MS = 2_000;

export interface LinkSettings {
  readonly url: string;
  readonly log: Log;
  /** Every time that a connection stands, the first time too. */
  readonly onReady?: () => void;
  /** Names of keys that others have changed, or null when it may be any. Needs `CLIENT TRACKING` in `onReady`. */
  readonly onChanged?: (key: string | null) => void;
}

type Client = ReturnType<typeof newClient>;

/**
 * A connection to Redis that is made when it is first needed and made again by itself when it is lost. While there is
 * none, commands fail at once: whoever asks knows better than a buffer what to do with the time.
 */
export class RedisLink {
  readonly place: string;
  readonly #settings: LinkSettings;
  #client: Promise<Client> | undefined;
  #isClosed = false;

  constructor(settings: LinkSettings) {
    this.#settings = settings;
    this.place = hideSecrets(settings.url);
  }

  async command(...args: string[]): Promise<unknown> {
    const client = await this.#connected();
    try {
      return await client.sendCommand(args);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async run(script: Script, args: readonly (string | number)[]): Promise<unknown> {
    const client = await this.#connected();
    const texts = args.map(String);
    try {
      return await client.sendCommand(["EVALSHA", script.digest, "0", ...texts]);
    } catch (error) {
      if (!messageOf(error).startsWith("NOSCRIPT")) throw this.#explained(error, script);
    }
    try {
      return await client.sendCommand(["EVAL", script.lua, "0", ...texts]);
    } catch (error) {
      throw this.#explained(error, script);
    }
  }

  /** Connects if need be. */
  async open(): Promise<void> {
    await this.#connected();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    if (client?.isOpen) client.destroy();
  }

  #connected(): Promise<Client> {
    if (this.#isClosed) throw new QuarryError("shutting_down", "the connection to Redis was closed");
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<Client> {
    const { log, onReady, onChanged } = this.#settings;
    const client = newClient(this.#settings, () => client.isReady || wasReady);
    let wasReady = false;
    client.on("error", (error) => log.debug({ redis: this.place, error: messageOf(error) }, "redis"));
    client.on("ready", () => {
      wasReady = true;
      onReady?.();
    });
    if (onChanged) client.on("invalidate", (key: unknown) => onChanged(key === null ? null : String(key)));
    try {
      await client.connect();
      return client;
    } catch (error) {
      // The next one who asks tries again.
      this.#client = undefined;
      if (client.isOpen) client.destroy();
      throw this.#explained(error);
    }
  }

  #explained(error: unknown, script?: Script): QuarryError {
    if (error instanceof QuarryError) return error;
    const said = hideSecrets(messageOf(rootOf(error)));
    const reply = rootOf(error) instanceof ErrorReply ? said.split(" ")[0]! : undefined;
    const advice = reply === undefined ? undefined : adviceOn(reply, said);
    if (reply !== undefined && advice === undefined) {
      const what = script ? `${script.name}: ` : "";
      return new QuarryError("database_failed", `Redis at ${this.place}: ${what}${said}`, { cause: error });
    }
    return new QuarryError(
      "redis_unavailable",
      advice === undefined
        ? `Redis at ${this.place} cannot be reached: ${said || "no connection"}; start it, or correct REDIS_URL`
        : `Redis at ${this.place} ${advice} (${said})`,
      { cause: error },
    );
  }
}

/** Refusals that end when somebody, or time, mends the server or the settings. */
function adviceOn(reply: string, said: string): string | undefined {
  switch (reply) {
    case "NOAUTH":
    case "WRONGPASS":
      // Worded so that what hides secrets in logs finds none in it.
      return "refuses the password, or wants one; put the right one into REDIS_URL, between a colon and @HOST";
    case "NOPERM":
      return "lets this user do too little: allow its keys, channels and scripts";
    case "OOM":
      return "is out of memory and refuses to write: raise maxmemory; nothing is lost meanwhile";
    case "MISCONF":
      return "cannot save to its disk and refuses to write: make room, or mend its settings";
    case "READONLY":
      return "is a replica and refuses to write: name the primary in REDIS_URL";
    case "LOADING":
    case "MASTERDOWN":
    case "BUSY":
    case "TRYAGAIN":
    case "CLUSTERDOWN":
      return "is not ready yet: wait a moment";
    default:
      return /DB index|invalid DB/i.test(said)
        ? "has no such database: correct the number at the end of REDIS_URL"
        : undefined;
  }
}

/** The client wraps what it was told when it gives up. */
function rootOf(error: unknown): unknown {
  const { socketError, originalError } = error as { socketError?: unknown; originalError?: unknown };
  const inner = socketError ?? originalError;
  if (inner !== undefined) return rootOf(inner);
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
}

function newClient({ url, onChanged }: LinkSettings, isKnown: () => boolean) {
  return createClient({
    url,
    RESP: 3,
    name: "quarry",
    disableOfflineQueue: true,
    pingInterval: PING_EVERY_MS,
    emitInvalidate: onChanged !== undefined,
    socket: {
      connectTimeout: CONNECT_WITHIN_MS,
      socketTimeout: 2 * PING_EVERY_MS,
      // The first connection is tried once, so that a wrong address is told at once; one that stood is made again.
      reconnectStrategy: (retries, cause) =>
        isKnown() ? Math.min(RETRY_MAX_MS, 25 * 2 ** Math.min(retries, 10)) * (0.5 + Math.random()) : cause,
    },
  });
}
