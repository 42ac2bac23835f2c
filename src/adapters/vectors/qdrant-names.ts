import { createHash } from "node:crypto";

const READABLE_LENGTH_MAX = 40;

/** Which collections of a server are ours: several Quarries may share one, and two models never share a collection. */
export interface Naming {
  /** Of every collection of this Quarry, whatever the model. */
  readonly ours: string;
  /** Of those with vectors of this model. */
  readonly ofModel: string;
  nameOf(collection: string): string;
}

/** Names are for people and for `startsWith`; digests keep apart what would read alike. */
export function qdrantNames(options: { namespace: string; model: string; dimensions: number }): Naming {
  const ours = `quarry_${digest(options.namespace)}_`;
  const ofModel = `${ours}${digest(`${options.dimensions} ${options.model}`)}_`;
  return {
    ours,
    ofModel,
    nameOf: (collection) => {
      const readable = collection.replace(/[^A-Za-z0-9]+/g, "-").slice(0, READABLE_LENGTH_MAX);
      return `${ofModel}${digest(collection)}_${readable}`;
    },
  };
}

/** The same chunk has the same id wherever it is written, so that writing it again replaces it. */
export function pointId(place: { tenant: string; documentId: string; chunkId: string }): string {
  const { tenant, documentId, chunkId } = place;
  const bytes = createHash("sha256")
    .update(JSON.stringify([tenant, documentId, chunkId]))
    .digest();
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    "-",
  );
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
