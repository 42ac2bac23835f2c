import { normalize, sep } from "node:path";
import { z } from "zod";
import { QuarryError } from "../errors.ts";
import { problemOf } from "../problems.ts";
import { ITEM_TYPES, type ItemType, OPERATIONS_OF, type Operation } from "./queue.ts";

const path = z
  .string()
  .min(1)
  .max(4_096)
  .regex(/^(\/|[A-Za-z]:[\\/])/, "give an absolute path")
  .overwrite(plainPath);
/** The machine on which somebody saw the path. */
const seenOn = z.string().min(1).max(255).optional();
const patterns = z.array(z.string().min(1).max(500)).max(1_000);

/** What an item of each type is about. Fields that are not named here are kept as they are. */
export const PAYLOADS = {
  content: z.looseObject({
    content: z.string().min(1).max(4_000_000),
    source_type: z.string().min(1).max(100).default("scratchbook"),
    main_tag: z.string().max(200).optional(),
    full_tag: z.string().max(1_000).optional(),
    /** A name that stays when the text changes, so that it can be updated and deleted. */
    source: z.string().min(1).max(1_000).optional(),
    title: z.string().max(1_000).optional(),
  }),
  file: z.looseObject({
    file_path: path,
    seen_on: seenOn,
    file_type: z.string().max(100).optional(),
    file_hash: z.string().max(200).optional(),
    size_bytes: z.number().int().min(0).optional(),
  }),
  folder: z.looseObject({
    folder_path: path,
    seen_on: seenOn,
    recursive: z.boolean().default(true),
    recursive_depth: z.number().int().min(0).max(1_000).optional(),
    patterns: patterns.optional(),
    ignore_patterns: patterns.optional(),
  }),
  project: z.looseObject({
    project_root: path,
    seen_on: seenOn,
    git_remote: z.string().max(2_000).optional(),
    project_type: z.string().max(100).optional(),
  }),
  library: z.looseObject({
    library_name: z.string().min(1).max(300),
    library_version: z.string().min(1).max(100).default("latest"),
    source_url: z.string().max(2_000).optional(),
    source_path: path.optional(),
    seen_on: seenOn,
  }),
  delete_tenant: z.looseObject({
    tenant_id_to_delete: z.string().min(1).max(200),
    reason: z.string().max(1_000).optional(),
  }),
  delete_document: z.looseObject({
    document_id: z.string().min(1).max(4_096),
    point_ids: z.array(z.string().max(200)).max(100_000).optional(),
  }),
  rename: z.looseObject({
    old_path: path,
    new_path: path,
    seen_on: seenOn,
    is_folder: z.boolean().default(false),
  }),
} as const satisfies Record<ItemType, z.ZodType>;

export type Payload<Type extends ItemType> = z.output<(typeof PAYLOADS)[Type]>;

/** The machine whose path an item is about; undefined where it is about none, or nobody said. */
export function seenOnOf(type: ItemType, payload: Readonly<Record<string, unknown>>): string | undefined {
  if (!("seen_on" in PAYLOADS[type].shape)) return undefined;
  // Documentation from the internet is the same from everywhere.
  if (type === "library" && payload.source_path === undefined && !isFileUrl(payload.source_url))
    return undefined;
  return payload.seen_on as string | undefined;
}

export function isFileUrl(url: unknown): boolean {
  return typeof url === "string" && /^file:/i.test(url);
}

/** One path has one spelling: /a/b, /a//b, /a/./b and /a/b/ are the same item and the same document. */
function plainPath(given: string): string {
  // A path of another system is kept as it is.
  if (!given.startsWith(sep)) return given;
  const plain = normalize(given);
  return plain.length > 1 && plain.endsWith(sep) ? plain.slice(0, -1) : plain;
}

/** Refuses what makes no sense, with the path of the field. */
export function checkedPayload<Type extends ItemType>(type: Type, payload: unknown): Payload<Type> {
  const parsed = PAYLOADS[type].safeParse(payload);
  if (parsed.success) return parsed.data as Payload<Type>;
  const [issue] = parsed.error.issues;
  throw new QuarryError(
    "invalid_input",
    `${["payload", ...issue!.path].map(String).join(".")}: ${problemOf(issue!)}`,
  );
}

export function checkOperation(type: ItemType, op: Operation): void {
  if (!ITEM_TYPES.includes(type))
    throw new QuarryError(
      "invalid_input",
      `item_type: there is no ${JSON.stringify(type)}; there are ${ITEM_TYPES.join(", ")}`,
    );
  const allowed = OPERATIONS_OF[type];
  if (allowed.includes(op)) return;
  throw new QuarryError(
    "invalid_input",
    `op: an item of type ${type} takes ${allowed.join(", ")}, not ${JSON.stringify(op)}`,
  );
}
