import { QdrantClient, type Schemas } from "@qdrant/js-client-rest";
import { isQuarryError, messageOf, QuarryError } from "../../errors.ts";
import type { Hit, IndexFilter, Point, Removal, VectorStore } from "../vectors.ts";
import { pointId, qdrantNames } from "./qdrant-names.ts";
import { unitVector } from "./unit.ts";

export interface QdrantSettings {
  /** http(s)://host[:port][/prefix]; without a port 6333, as everywhere with Qdrant. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Whose points these are: several Quarries may share a server. */
  readonly namespace: string;
  readonly model: string;
  readonly dimensions: number;
  readonly timeoutMs?: number;
}

const DEFAULT_PORT = 6333;
const TIMEOUT_MS = 30_000;
const POINTS_PER_REQUEST = 256;
/** How many candidates the graph walk keeps; see docs/stores.md for the recall this gives. */
const CANDIDATES_MIN = 128;
/** Of unit vectors: finer than the 32-bit floats they become, and half as long to send as all the digits. */
const DIGITS_SCALE = 1e7;
const HOMES_MAX = 10_000;

/** Asks nothing of the server before it is needed: one that is away stops only what needs it. */
export function openQdrantVectors(settings: QdrantSettings): VectorStore {
  return new QdrantVectors(settings);
}

/** One Qdrant collection for each collection; tenants share it and are told apart by an indexed field. */
class QdrantVectors implements VectorStore {
  readonly #settings: QdrantSettings;
  readonly #client: QdrantClient;
  readonly #names: ReturnType<typeof qdrantNames>;
  readonly #made = new Map<string, Promise<void>>();
  #known: ReadonlySet<string> = new Set();
  /** A document stays in its collection; which documents were already looked for in the others. */
  readonly #homes = new Map<string, string>();

  constructor(settings: QdrantSettings) {
    this.#settings = settings;
    this.#client = connect(settings);
    this.#names = qdrantNames(settings);
  }

  async upsert(points: readonly Point[]): Promise<void> {
    const newest = new Map<string, Point>();
    for (const point of points)
      newest.set(pointId(point), { ...point, vector: unitVector(point.vector, this.#settings.dimensions) });
    const byCollection = Map.groupBy(newest, ([, { collection }]) => collection);
    for (const [collection, some] of byCollection) await this.#write(collection, some);
  }

  async remove({ documentId, chunkIds }: Removal): Promise<void> {
    const must: Schemas["Condition"][] = [{ key: "document", match: { value: documentId } }];
    if (chunkIds) must.push({ key: "chunk", match: { any: [...chunkIds] } });
    await this.#inEach((name) => this.#client.delete(name, { wait: true, filter: { must } }));
  }

  async search(
    vector: Float32Array,
    { limit, filter }: { limit: number; filter: IndexFilter },
  ): Promise<Hit[]> {
    const query = numbersOf(unitVector(vector, this.#settings.dimensions));
    if (filter.documentIds?.length === 0) return [];
    const params = { hnsw_ef: Math.max(CANDIDATES_MIN, 2 * limit) };
    const answers = await this.#inEach(
      (name) =>
        this.#client.query(name, {
          query,
          limit,
          params,
          filter: conditions(filter),
          with_payload: ["document", "chunk"],
        }),
      filter.collection,
    );
    return answers
      .flatMap(({ points }) => points.map(hitOf))
      .sort((a, b) => b.score - a.score || (a.chunkId < b.chunkId ? -1 : 1))
      .slice(0, limit);
  }

  async count(filter: IndexFilter): Promise<number> {
    if (filter.documentIds?.length === 0) return 0;
    const counts = await this.#inEach(
      (name) => this.#client.count(name, { filter: conditions(filter), exact: true }),
      filter.collection,
    );
    return counts.reduce((sum, { count }) => sum + count, 0);
  }

  async clear(): Promise<void> {
    this.#made.clear();
    this.#homes.clear();
    for (const name of await this.#list(this.#names.ours))
      await this.#ask(() => this.#client.deleteCollection(name));
  }

  async close(): Promise<void> {}

  /** What has come into a collection leaves the others. Asked once for a document: it stays where it is. */
  async #write(collection: string, points: readonly NamedPoint[]): Promise<void> {
    const home = this.#names.nameOf(collection);
    const moved = points.filter(([, { documentId }]) => this.#homes.get(documentId) !== collection);
    const [names] = await Promise.all([
      moved.length > 0 ? this.#list(this.#names.ofModel) : [],
      this.#send(home, points),
    ]);
    const ids = moved.map(([id]) => id);
    for (const name of names)
      if (name !== home) await this.#unlessGone(() => this.#client.delete(name, { wait: true, points: ids }));
    if (this.#homes.size > HOMES_MAX) this.#homes.clear();
    for (const [, { documentId }] of moved) this.#homes.set(documentId, collection);
  }

  async #send(name: string, points: readonly NamedPoint[]): Promise<void> {
    const send = async (some: readonly NamedPoint[]) => {
      await this.#make(name);
      await this.#ask(() => this.#client.upsert(name, { wait: true, points: some.map(stored) }));
    };
    for (let start = 0; start < points.length; start += POINTS_PER_REQUEST) {
      const some = points.slice(start, start + POINTS_PER_REQUEST);
      await send(some).catch((error) => {
        if (!isQuarryError(error, "not_found")) throw error;
        // Emptied by another process since it was made here.
        this.#made.delete(name);
        return send(some);
      });
    }
  }

  /** Two processes may do it at once; each step may be repeated. */
  #make(name: string): Promise<void> {
    let made = this.#made.get(name);
    if (!made) {
      made = this.#create(name);
      this.#made.set(name, made);
      made.catch(() => this.#made.delete(name));
    }
    return made;
  }

  async #create(name: string): Promise<void> {
    const { dimensions } = this.#settings;
    const vectors = { size: dimensions, distance: "Cosine" as const };
    await this.#ask(() => this.#client.createCollection(name, { vectors })).catch((error) => {
      if (!isQuarryError(error, "constraint_violated")) throw error;
    });
    const fields = {
      tenant: { type: "keyword" as const, is_tenant: true },
      document: { type: "uuid" as const },
      chunk: { type: "keyword" as const },
    };
    for (const [field_name, field_schema] of Object.entries(fields))
      await this.#ask(() => this.#client.createPayloadIndex(name, { field_name, field_schema, wait: true }));
  }

  /** In one collection, or in all of this model's. Those known from before are not kept waiting for the list. */
  async #inEach<T>(work: (name: string) => Promise<T> | undefined, collection?: string): Promise<T[]> {
    const inThese = (names: Iterable<string>) =>
      Promise.all(Array.from(names, (name) => this.#unlessGone(async () => work(name))));
    if (collection !== undefined) return present(await inThese([this.#names.nameOf(collection)]));
    const known = this.#known;
    const [names, answers] = await Promise.all([this.#list(this.#names.ofModel), inThese(known)]);
    this.#known = new Set(names);
    return present([...answers, ...(await inThese(names.filter((name) => !known.has(name))))]);
  }

  /** A collection that is not there holds nothing. */
  async #unlessGone<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await this.#ask(work);
    } catch (error) {
      if (isQuarryError(error, "not_found")) return undefined;
      throw error;
    }
  }

  async #list(prefix: string): Promise<string[]> {
    const { collections } = await this.#ask(() => this.#client.getCollections());
    return collections.map(({ name }) => name).filter((name) => name.startsWith(prefix));
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw translated(error, new URL(this.#settings.url).host);
    }
  }
}

type NamedPoint = readonly [id: string, point: Point];

function stored([id, { vector, tenant, documentId, chunkId, collection }]: NamedPoint) {
  const payload = { tenant, document: documentId, chunk: chunkId, collection };
  return { id, vector: numbersOf(vector), payload };
}

function connect({ url, apiKey, timeoutMs = TIMEOUT_MS }: QdrantSettings): QdrantClient {
  const { protocol, hostname, port, pathname } = new URL(url);
  // A URL does not keep the port that its protocol has anyway.
  const isPortGiven = port !== "" || /^[^/]*\/\/[^/]*:\d+(\/|$)/.test(url);
  return new QdrantClient({
    url: `${protocol}//${hostname}`,
    port: port !== "" ? Number(port) : isPortGiven ? null : DEFAULT_PORT,
    prefix: pathname.replace(/\/+$/, ""),
    timeout: timeoutMs,
    headers: {
      // Qdrant sends compressed answers in two packets, and the second waits 40 ms for the first to be acknowledged.
      "accept-encoding": "identity",
      // As a header: the client's own option writes to the console.
      "api-key": apiKey,
    },
    checkCompatibility: false,
  });
}

function conditions({ tenant, documentIds }: IndexFilter): Schemas["Filter"] {
  return {
    must: [
      { key: "tenant", match: { value: tenant } },
      ...(documentIds ? [{ key: "document", match: { any: [...documentIds] } }] : []),
    ],
  };
}

function hitOf({ score, payload }: Schemas["ScoredPoint"]): Hit {
  return { chunkId: String(payload?.chunk), documentId: String(payload?.document), score };
}

function present<T>(answers: readonly (T | undefined)[]): T[] {
  return answers.filter((answer) => answer !== undefined);
}

function numbersOf(vector: Float32Array): number[] {
  const numbers = new Array<number>(vector.length);
  for (let at = 0; at < vector.length; at++)
    numbers[at] = Math.round(vector[at]! * DIGITS_SCALE) / DIGITS_SCALE;
  return numbers;
}

function translated(error: unknown, host: string): QuarryError {
  const { status, data } = error as { status?: number; data?: { status?: { error?: string } } };
  const said = data?.status?.error ?? messageOf(error);
  const as = (code: ConstructorParameters<typeof QuarryError>[0], message: string) =>
    new QuarryError(code, message, { cause: error });
  if (status === 404) return as("not_found", said);
  if (status === 409) return as("constraint_violated", said);
  if (status === 401 || status === 403)
    return as("store_unavailable", `Qdrant at ${host} refuses the key: set QDRANT_API_KEY to one of its own`);
  if (status === undefined || status === 429 || status >= 500) {
    const reason = ((error as Error).cause as { code?: string } | undefined)?.code ?? said;
    const advice = status === undefined ? "; start it, or set QDRANT_URL to where it listens" : "";
    return as("store_unavailable", `Qdrant at ${host} cannot be reached: ${reason}${advice}`);
  }
  return as("store_failed", `Qdrant at ${host} refused: ${said}`);
}
