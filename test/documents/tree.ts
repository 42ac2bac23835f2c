import { randomUUID } from "node:crypto";
import type { DocumentQueues } from "../../src/documents/queues.ts";
import {
  type Claim,
  type Database,
  done,
  type Outcome,
  openQueue,
  type QueueStore,
} from "../../src/index.ts";

export interface Tree {
  readonly documentId: string;
}

/** What a document looks like: how many chunks each of its pages has. */
export interface TreeShape {
  readonly pages: readonly number[];
}

export type Stores = { readonly [Name in keyof DocumentQueues]: QueueStore<object> };

export function openStores(database: Database, queues: DocumentQueues): Stores {
  const entries = Object.entries(queues).map(([name, queue]) => [name, openQueue<object>(database, queue)]);
  return Object.fromEntries(entries) as Stores;
}

export async function plantDocument(stores: Stores): Promise<string> {
  const id = randomUUID();
  await stores.split.enqueue([
    {
      id,
      filename: `${id}.txt`,
      source: id,
      original_path: `documents/${id}/original.txt`,
      content_hash: id,
    },
  ]);
  return id;
}

/** What the handlers would answer, without reading any file. */
export function splitOutcome(stores: Stores, claim: Claim<object>, shape: TreeShape): Outcome {
  const rows = shape.pages.map((_chunks, index) => ({ document_id: claim.key, page_number: index + 1 }));
  return {
    kind: "done",
    result: { total_pages: rows.length },
    also: async (transaction) => {
      await stores.pageOcr.within(transaction).enqueue(rows);
    },
  };
}

export function chunkOutcome(stores: Stores, claim: Claim<object>, count: number): Outcome {
  const { document_id } = claim.row as { document_id: string };
  const rows = Array.from({ length: count }, (_, index) => ({
    page_id: claim.key,
    document_id,
    chunk_id: `${claim.key}-${index}`,
    chunk_index: index,
    content: `text ${index}`,
  }));
  return {
    kind: "done",
    result: { is_chunked: true, chunk_count: count },
    also: async (transaction) => {
      await stores.chunkVector.within(transaction).enqueue(rows);
    },
  };
}

/** A document whose phases are all completed. No other document may be waiting. */
export async function growTree(database: Database, queues: DocumentQueues, shape: TreeShape): Promise<Tree> {
  const stores = openStores(database, queues);
  const documentId = await plantDocument(stores);
  const all = { worker: "gardener", limit: 1_000 };
  for (const claim of await stores.split.claim(all))
    await stores.split.settle([{ claim, outcome: splitOutcome(stores, claim, shape) }]);
  const pages = await stores.pageOcr.claim(all);
  await stores.pageOcr.settle(pages.map((claim) => ({ claim, outcome: done({ page_file_path: "x" }) })));
  for (const claim of await stores.pageChunk.claim(all)) {
    const { page_number } = claim.row as { page_number: number };
    const outcome = chunkOutcome(stores, claim, shape.pages[page_number - 1]!);
    await stores.pageChunk.settle([{ claim, outcome }]);
  }
  for (const store of [stores.chunkVector, stores.pageGraphrag, stores.chunkGraphrag]) {
    const claims = await store.claim(all);
    await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
  }
  return { documentId };
}
