import { createClient } from "@redis/client";
import { type Services, startServices } from "./services.ts";

export interface TestRedis {
  readonly url: string;
  /** As a foreign program would: any command, word by word. */
  command(...words: string[]): Promise<unknown>;
  close(): Promise<void>;
}

/** The first one, 0, holds which of the others are taken. */
const DATABASES = 15;
const TAKEN_FOR_S = 600;
let ownServices: Promise<Services> | undefined;

/** An empty Redis database of its own for a test, on the server that serves all test files. */
export async function freshRedis(): Promise<TestRedis> {
  const server = await findServer();
  const registry = await connect(server, 0);
  for (let tries = 0; tries < 600; tries++) {
    for (let number = 1; number <= DATABASES; number++) {
      const key = `quarry-test:database:${number}`;
      const isOurs = await registry.sendCommand([
        "SET",
        key,
        String(process.pid),
        "NX",
        "EX",
        String(TAKEN_FOR_S),
      ]);
      if (isOurs === null) continue;
      const redis = await connect(server, number);
      await redis.sendCommand(["FLUSHDB"]);
      return {
        url: urlOf(server, number),
        command: (...words) => redis.sendCommand(words),
        close: async () => {
          await redis.sendCommand(["FLUSHDB"]);
          await registry.sendCommand(["DEL", key]);
          redis.destroy();
          registry.destroy();
        },
      };
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("every database of the test server is taken");
}

/** A connection of its own to a server that the test has started. */
export async function redisAt(url: string): Promise<TestRedis> {
  const client = createClient({ url, socket: { reconnectStrategy: 20 } });
  client.on("error", () => undefined);
  await client.connect();
  return {
    url,
    command: (...words) => client.sendCommand(words),
    close: async () => client.destroy(),
  };
}

async function findServer(): Promise<string> {
  if (process.env.TEST_REDIS_URL) return process.env.TEST_REDIS_URL;
  ownServices ??= startServices({ postgres: false });
  return (await ownServices).redisUrl;
}

async function connect(server: string, number: number) {
  const client = createClient({ url: urlOf(server, number) });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

function urlOf(server: string, number: number): string {
  const url = new URL(server);
  url.pathname = `/${number}`;
  return url.href;
}
