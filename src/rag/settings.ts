import { isAbsolute, join, resolve, sep } from "node:path";
import { z } from "zod";
import { LOCAL_MODEL } from "../adapters/embed/choice.ts";
import { QuarryError } from "../errors.ts";
import { isName, NAMES_ARE } from "../names.ts";
import { unknownKey } from "../nearest.ts";
import { RESERVED_RAG_IDS } from "./queue.ts";

/** A RAG: whose documents its files become, and where the files lie. */
export interface Rag {
  readonly id: string;
  readonly tenant: string;
  readonly collection: string;
  readonly folders: RagFolders;
  /** How its documents are cut, where not as usual. */
  readonly chunking: Chunking | undefined;
}

/** A file comes in by `incoming` and ends in one of the other two. */
export interface RagFolders {
  readonly sources: string;
  readonly incoming: string;
  readonly processed: string;
  readonly failed: string;
}

export interface Chunking {
  /** Most tokens of a chunk, with the title and headings that stand before it. */
  readonly tokens: number;
  /** How much of the text before a chunk is embedded with it. */
  readonly overlap: number;
}

export type Rags = ReadonlyMap<string, Rag>;

const RAG_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

const name = z.string("give a name").refine(isName, NAMES_ARE);
const folder = z.string("give a folder").trim().min(1, "give a folder");
const whole = (min: number, max: number) => {
  const said = `give a whole number from ${min} to ${max}`;
  return z.number(said).int(said).min(min, said).max(max, said);
};

const chunkingSchema = z.strictObject({
  tokens: whole(128, 8_192),
  overlap: whole(0, 1_024).default(24),
});

const ragSchema = z.strictObject({
  collection: name.optional(),
  tenant: name.optional(),
  sources: folder.optional(),
  processed: folder.optional(),
  failed: folder.optional(),
  chunking: chunkingSchema
    .refine(({ tokens, overlap }) => overlap * 2 <= tokens, "overlap may be half of tokens at most")
    .optional(),
  embedding_model: z.string("give the name of a model").min(1).optional(),
});

/** RAGs as they are written in a file or given in a call. */
export type RagSettings = Readonly<Record<string, z.input<typeof ragSchema>>>;

/** Checks what was written, fills in what was not, and makes every path absolute. */
export function readRags(given: unknown, at: { folder: string; where: string; model: string }): Rags {
  const rags = new Map<string, Rag>();
  for (const [id, values] of Object.entries(entriesOf(given, at.where))) {
    const place = `rags.${id} in ${at.where}`;
    refuseId(id, place);
    const parsed = ragSchema.safeParse(values ?? {});
    if (!parsed.success) throw wrong(place, parsed.error.issues[0]!);
    const rag = ragOf(id, parsed.data, at.folder);
    refuseModel(parsed.data.embedding_model, { served: at.model, id, place });
    const other = [...rags.values()].find((known) => overlap(known.folders.sources, rag.folders.sources));
    if (other) {
      throw new QuarryError(
        "invalid_input",
        `${place}: sources is ${rag.folders.sources}, which is the folder of ${other.id}, inside it or around it; give every RAG a folder of its own`,
      );
    }
    rags.set(id, rag);
  }
  return rags;
}

/** A chunk that the model does not read to its end would be found by its beginning only. */
export function checkChunking(rags: Rags, tokensMax: number): void {
  for (const { id, chunking } of rags.values()) {
    if (!chunking || chunking.tokens <= tokensMax) continue;
    throw new QuarryError(
      "invalid_input",
      `rags.${id}: chunking.tokens is ${chunking.tokens}, and the embedder reads ${tokensMax} at once; give at most that, or set QUARRY_EMBEDDER to a model that reads more`,
    );
  }
}

function ragOf(id: string, given: z.output<typeof ragSchema>, base: string): Rag {
  const below = (path: string) => (isAbsolute(path) ? resolve(path) : resolve(base, path));
  const sources = below(given.sources ?? join("data", "sources", id));
  return {
    id,
    tenant: given.tenant ?? "default",
    collection: given.collection ?? id,
    folders: {
      sources,
      incoming: join(sources, "incoming"),
      processed: given.processed === undefined ? join(sources, "processed") : below(given.processed),
      failed: given.failed === undefined ? join(sources, "failed") : below(given.failed),
    },
    chunking: given.chunking,
  };
}

function entriesOf(given: unknown, where: string): Record<string, unknown> {
  if (given === undefined || given === null) return {};
  if (typeof given === "object" && !Array.isArray(given)) return given as Record<string, unknown>;
  throw new QuarryError(
    "invalid_input",
    `rags in ${where} must name each RAG and what it has, such as "rags: { policies_rag: { collection: policies } }"`,
  );
}

function refuseId(id: string, place: string): void {
  if ((RESERVED_RAG_IDS as readonly string[]).includes(id))
    throw new QuarryError(
      "invalid_input",
      `${place}: ${RESERVED_RAG_IDS.join(", ")} are the names of lists and cannot be RAGs; choose another`,
    );
  if (!RAG_ID.test(id))
    throw new QuarryError(
      "invalid_input",
      `${place}: a RAG's name is 1 to 64 of A-Z, a-z, 0-9, dot, dash and underscore, and begins with a letter or digit`,
    );
}

/** All collections are searched with one model, so all are embedded with it. */
function refuseModel(
  wanted: string | undefined,
  { served, id, place }: { served: string; id: string; place: string },
): void {
  if (wanted === undefined || wanted === served) return;
  throw new QuarryError(
    "invalid_input",
    `${place}: embedding_model is ${JSON.stringify(wanted)}, but ${JSON.stringify(served)} is in use, which all RAGs share; remove embedding_model from ${id}, or set ${settingFor(wanted)} and run quarry reindex, which embeds everything anew`,
  );
}

function settingFor(model: string): string {
  if (model === LOCAL_MODEL) return "QUARRY_EMBEDDER=local";
  return `QUARRY_EMBEDDER=ollama:${model} (or openai:${model}, wherever it is served)`;
}

function wrong(place: string, { path, message, code, ...issue }: z.core.$ZodIssue): QuarryError {
  const field = path.length > 0 ? `${path.join(".")}: ` : "";
  const [unknown] = code === "unrecognized_keys" ? ((issue as { keys?: string[] }).keys ?? []) : [];
  const known = Object.keys(path[0] === "chunking" ? chunkingSchema.shape : ragSchema.shape);
  const said = unknown === undefined ? message : `it has ${unknownKey(unknown, known)}`;
  return new QuarryError("invalid_input", `${place}: ${field}${said}`);
}

function overlap(one: string, other: string): boolean {
  return one === other || one.startsWith(other + sep) || other.startsWith(one + sep);
}
