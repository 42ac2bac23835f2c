import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { qdrantNames } from "../../src/adapters/vectors/qdrant-names.ts";
import { openDatabase, openQuarry, type Quarry, type Row } from "../../src/index.ts";
import { type Cut, cuttableLine } from "../support/cuttable-line.ts";
import { makePdf, text } from "../support/make-pdf.ts";
import { startModelServer } from "../support/model-server.ts";
import { freshPostgres } from "../support/postgres.ts";
import { findQdrant } from "../support/qdrant.ts";
import { freshBucket, type TestBucket } from "../support/s3.ts";

const BIN = join(import.meta.dirname, "../../bin/quarry.js");
export const PAGES = 3;
/** What each process of a machine does. */
const LANES = [
  "items,items.oldest,documents.split,pages.ocr,pages.scan",
  "pages.chunk,chunks.vector,chunks.graphrag,pages.graphrag,documents.remove",
];

/** Two machines with two workers each, and this process as a third that only hands documents in. */
export interface Machines {
  readonly quarry: Quarry;
  readonly bucket: TestBucket;
  /** Reaches everything over lines that can be cut. */
  readonly far: Machine;
  readonly near: Machine;
  cut(how: Cut): void;
  mend(): void;
  /** Hands in that many more documents. */
  ingest(count: number): Promise<void>;
  query(sql: string): Promise<Row[]>;
  completed(): Promise<number>;
  /** How many points Qdrant holds for them. */
  points(): Promise<number>;
  /** Exit codes of all workers. */
  stop(): Promise<number[]>;
  close(): Promise<void>;
}

export class Machine {
  readonly ids: string[] = [];
  readonly #children: ChildProcess[] = [];
  #said = "";

  async start(env: Readonly<Record<string, string>>): Promise<void> {
    const { NODE_TEST_CONTEXT: _, ...own } = process.env;
    for (const lanes of LANES) {
      const child = spawn(process.execPath, [BIN, "worker", "--json", "--lanes", lanes], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...own, ...env },
      });
      this.#children.push(child);
      child.stderr.on("data", (words) => {
        this.#said += words;
      });
      let said = "";
      const ended = once(child, "exit").then(() => assert.fail(`a worker ended at its start: ${this.#said}`));
      ended.catch(() => undefined);
      while (!said.includes("\n")) said += (await Promise.race([once(child.stdout, "data"), ended]))[0];
      this.ids.push(JSON.parse(said).worker);
    }
  }

  /** Everything that its processes logged. */
  get said(): string {
    return this.#said;
  }

  get isRunning(): boolean {
    return this.#children.every(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  }

  async stop(): Promise<number[]> {
    return Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? -1;
        child.kill("SIGTERM");
        const [code] = await once(child, "exit");
        return (code as number | null) ?? -1;
      }),
    );
  }
}

export async function openMachines(): Promise<Machines> {
  const folder = await mkdtemp(join(tmpdir(), "quarry-machines-"));
  const [postgres, qdrant, bucket, model] = await Promise.all([
    freshPostgres(),
    findQdrant(),
    freshBucket(),
    // Slow enough that a cut finds something under way.
    startModelServer({ delayMs: 250 }),
  ]);
  const quarry = await openQuarry({
    ...{ dataFolder: join(folder, "desk"), databaseUrl: postgres.url, logLevel: "silent" },
    ...{ embedder: "ollama:nomic-embed-text", ollamaHost: model.url, staleMs: 5_000, heartbeatMs: 1_000 },
    ...{ vectors: "qdrant", qdrantUrl: qdrant.url, ...(qdrant.apiKey && { qdrantApiKey: qdrant.apiKey }) },
    ...bucket.settings,
  });
  const rows = openDatabase(postgres.url);
  const lines = await Promise.all([postgres.url, qdrant.url, bucket.endpoint].map(cuttableLine));
  const [near, far] = [new Machine(), new Machine()];
  const env = (name: string, [database, vectors, files]: readonly string[]) => ({
    QUARRY_DATA: join(folder, name),
    DATABASE_URL: database!,
    QDRANT_URL: vectors!,
    ...(qdrant.apiKey && { QDRANT_API_KEY: qdrant.apiKey }),
    ...bucket.env,
    AWS_ENDPOINT_URL_S3: files!,
    QUARRY_EMBEDDER: "ollama:nomic-embed-text",
    OLLAMA_HOST: model.url,
    STALE_TASK_TIMEOUT: "5",
    HEARTBEAT_INTERVAL: "1",
    WORKER_POLL_INTERVAL: "0.5",
    TASK_QUEUE_CHECK_INTERVAL: "1",
  });
  const stop = async () => (await Promise.all([near.stop(), far.stop()])).flat();
  const close = async () => {
    await stop();
    await quarry.close();
    await rows.close();
    await Promise.all([...lines.map((line) => line.close()), model.close()]);
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  };
  const query = (sql: string) => rows.query(sql);
  try {
    await Promise.all([
      near.start(env("near", [postgres.url, qdrant.url, bucket.endpoint])),
      far.start(
        env(
          "far",
          lines.map((line) => line.url),
        ),
      ),
    ]);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...{ quarry, bucket, near, far, query, stop, close },
    cut: (how) => {
      for (const line of lines) line.cut(how);
    },
    mend: () => {
      for (const line of lines) line.mend();
    },
    points: async () => pointsIn(qdrant, String((await query("select id from data_folder"))[0]!.id)),
    ingest: documentsFrom(join(folder, "files"), quarry),
    completed: async () => (await quarry.documents.states()).completed,
  };
}

async function pointsIn(
  { url, apiKey }: { url: string; apiKey?: string },
  namespace: string,
): Promise<number> {
  const headers = { "content-type": "application/json", ...(apiKey && { "api-key": apiKey }) };
  const ask = async (path: string, body?: string) => {
    const answer = await fetch(`${url}/collections${path}`, {
      headers,
      ...(body && { method: "POST", body }),
    });
    return ((await answer.json()) as { result: unknown }).result;
  };
  const { ours } = qdrantNames({ namespace, model: "", dimensions: 0 });
  const { collections } = (await ask("")) as { collections: { name: string }[] };
  let points = 0;
  for (const { name } of collections.filter((collection) => collection.name.startsWith(ours)))
    points += ((await ask(`/${name}/points/count`, '{"exact":true}')) as { count: number }).count;
  return points;
}

/** Documents of three pages, each of which has a word that no other page has. */
function documentsFrom(folder: string, quarry: Quarry): Machines["ingest"] {
  let made = 0;
  return async (count) => {
    await mkdir(folder, { recursive: true });
    const paths: string[] = [];
    for (let n = 0; n < count; n++) {
      const path = join(folder, `${made}.pdf`);
      await writeFile(
        path,
        makePdf({ pages: Array.from({ length: PAGES }, (_, page) => pageOf(made, page)) }),
      );
      paths.push(path);
      made++;
    }
    const { refused } = await quarry.ingest(paths);
    assert.deepEqual(refused, []);
  };
}

export function wordOf(document: number, page: number): string {
  const letters = (number: number) =>
    [...String(number)].map((digit) => "bcdfghjklm"[Number(digit)]! + "aeiouaeiou"[Number(digit)]!).join("");
  return `zu${letters(document)}x${letters(page)}q`;
}

function pageOf(document: number, page: number) {
  const word = wordOf(document, page);
  const lines = [
    `The ${word} bench is cut by Ada Lovelace in the quarry.`,
    `Nobody at Basalt Works saws ${word}.`,
  ];
  return { items: lines.map((line, index) => text(line, { x: 72, y: 700 - 20 * index })) };
}

export async function until(isReached: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 30));
}
