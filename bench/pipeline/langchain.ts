import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { Embedder } from "../../src/adapters/embed.ts";
import { loadPeer } from "../queue/contender.ts";
import type { Contender } from "./contender.ts";

/** As its guides have it: about a thousand characters, two hundred of them shared with the chunk before. */
const SPLITTER = { chunkSize: 1_000, chunkOverlap: 200 };

interface LangChainDocument {
  readonly pageContent: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface Loader {
  load(): Promise<LangChainDocument[]>;
}

type LoaderClass = new (path: string) => Loader;

/** A loader a file, the recursive splitter, the store in memory, and Quarry's own embedder. */
export async function openLangChain(embedder: Embedder): Promise<Contender> {
  const { PDFLoader } = await loadPeer<{ PDFLoader: LoaderClass }>(
    "@langchain/community/document_loaders/fs/pdf",
  );
  const { DocxLoader } = await loadPeer<{ DocxLoader: LoaderClass }>(
    "@langchain/community/document_loaders/fs/docx",
  );
  const { TextLoader } = await loadPeer<{ TextLoader: LoaderClass }>(
    "@langchain/classic/document_loaders/fs/text",
  );
  const { load } = await loadPeer<{ load(html: string): (selector: string) => { text(): string } }>(
    "cheerio",
  );
  const { RecursiveCharacterTextSplitter } = await loadPeer<{
    RecursiveCharacterTextSplitter: new (
      options: typeof SPLITTER,
    ) => {
      splitDocuments(documents: readonly LangChainDocument[]): Promise<LangChainDocument[]>;
    };
  }>("@langchain/textsplitters");
  const splitter = new RecursiveCharacterTextSplitter(SPLITTER);
  const store = await openMemoryStore(embedder);

  const loaders: Readonly<Record<string, (path: string) => Promise<LangChainDocument[]>>> = {
    ".pdf": (path) => new PDFLoader(path).load(),
    ".docx": (path) => new DocxLoader(path).load(),
    // What its loader of web pages does with a page once it has fetched it.
    ".html": async (path) => [
      { pageContent: load(await readFile(path, "utf8"))("body").text(), metadata: { source: path } },
    ],
  };
  return {
    name: "LangChain.js",
    take: async (paths) => {
      const documents: LangChainDocument[] = [];
      for (const path of paths) {
        const read = loaders[extname(path)] ?? ((text: string) => new TextLoader(text).load());
        documents.push(...(await read(path)));
      }
      await store.addDocuments(await splitter.splitDocuments(documents));
    },
    close: async () => undefined,
  };
}

export interface MemoryStore {
  addDocuments(documents: readonly LangChainDocument[]): Promise<void>;
  addVectors(vectors: readonly number[][], documents: readonly LangChainDocument[]): Promise<void>;
  similaritySearchVectorWithScore(vector: readonly number[], limit: number): Promise<unknown[]>;
}

/** LangChain's vector store that needs no server. */
export async function openMemoryStore(embedder: Embedder): Promise<MemoryStore> {
  const { Embeddings } = await loadPeer<{ Embeddings: new (params: object) => object }>(
    "@langchain/core/embeddings",
  );
  const { MemoryVectorStore } = await loadPeer<{
    MemoryVectorStore: new (embeddings: object) => MemoryStore;
  }>("@langchain/classic/vectorstores/memory");
  const signal = new AbortController().signal;
  class SharedEmbeddings extends Embeddings {
    async embedDocuments(texts: string[]): Promise<number[][]> {
      return (await embedder.embed(texts, signal)).vectors.map((vector) => [...vector]);
    }
  }
  return new MemoryVectorStore(new SharedEmbeddings({}));
}
