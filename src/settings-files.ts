import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { messageOf, QuarryError } from "./errors.ts";
import { nearest, unknownKey } from "./nearest.ts";

/** In the order in which they count. The second one is the RAG contract's, and holds settings of other programs too. */
export const SETTINGS_FILES = ["quarry.yaml", "configs/client/client.yaml"] as const;
export type SettingsFile = (typeof SETTINGS_FILES)[number];

export interface FiledSettings {
  /** By their names in upper case. */
  readonly values: ReadonlyMap<string, { readonly value: unknown; readonly file: SettingsFile }>;
  /** What stands under `rags`, first the file that counts first. */
  readonly rags: readonly { readonly where: SettingsFile; readonly rags: unknown }[];
  readonly warnings: readonly string[];
}

/** Sections of the files: settings that are more than a name and a value. */
const SECTIONS = ["redis", "rags"] as const;
const DB_MAX = 1_000_000;

const redisSchema = z.strictObject({
  url: z.url({ protocol: /^rediss?$/, error: "give a URL such as redis://localhost:6379/0" }),
  password: z.union([z.string(), z.number()], "give a text").nullish(),
  db: z.int("give a whole number").min(0).max(DB_MAX).nullish(),
});

export function readSettingsFiles(folder: string, names: readonly string[]): FiledSettings {
  const values = new Map<string, { value: unknown; file: SettingsFile }>();
  const rags: { where: SettingsFile; rags: unknown }[] = [];
  const warnings: string[] = [];
  for (const file of SETTINGS_FILES) {
    const content = readYaml(join(folder, file));
    const isOurs = file === "quarry.yaml";
    if (isOurs) refuseUnknown(content, join(folder, file), names);
    for (const [name, value] of Object.entries(content)) {
      const key = name.toUpperCase();
      if (isOurs && names.includes(key)) values.set(key, { value, file });
    }
    if (!isOurs) warnings.push(...misspeltSections(content, file));
    const { redis } = content;
    if (redis !== undefined && redis !== null) {
      const { url, hasPassword } = redisUrlOf(redis, file);
      if (!values.has("REDIS_URL")) values.set("REDIS_URL", { value: url, file });
      if (hasPassword) {
        warnings.push(
          `${file} holds the password of Redis: files are copied, shown and committed; set REDIS_URL=redis://:PASSWORD@HOST:6379/0 in the environment instead`,
        );
      }
    }
    if (content.rags !== undefined) rags.push({ where: file, rags: content.rags });
  }
  return { values, rags, warnings };
}

/** One address from `url`, `password` and `db`. */
function redisUrlOf(given: unknown, file: SettingsFile): { url: string; hasPassword: boolean } {
  const parsed = redisSchema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    if (issue.code === "unrecognized_keys") {
      const unknown = unknownKey(issue.keys[0]!, Object.keys(redisSchema.shape));
      throw new QuarryError("invalid_input", `redis in ${file} has ${unknown}`);
    }
    const place = ["redis", ...issue.path].join(".");
    throw new QuarryError("invalid_input", `${place} in ${file}: ${issue.message}`);
  }
  const { url: base, password, db } = parsed.data;
  const url = new URL(base);
  if (password !== undefined && password !== null) url.password = encodeURIComponent(String(password));
  if (db !== undefined && db !== null) url.pathname = `/${db}`;
  return { url: url.href, hasPassword: url.password !== "" };
}

function refuseUnknown(content: object, path: string, names: readonly string[]): void {
  const known = [...names.map((name) => name.toLowerCase()), ...SECTIONS];
  const unknown = Object.keys(content).find((name) => !known.includes(name.toLowerCase()));
  if (unknown === undefined) return;
  throw new QuarryError("invalid_input", `${path} has ${unknownKey(unknown, known)}`);
}

/** The file has sections of other programs too, so that only what is almost the name of one of ours is told. */
function misspeltSections(content: object, file: SettingsFile): string[] {
  return Object.keys(content).flatMap((name) => {
    const section = (SECTIONS as readonly string[]).includes(name) ? undefined : nearest(name, SECTIONS);
    return section === undefined
      ? []
      : [`${file} has ${name}, which is not read; if it is meant for Quarry, call it ${section}`];
  });
}

/** A file that is not there has nothing in it. */
function readYaml(path: string): Record<string, unknown> {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch {
    return {};
  }
  let values: unknown;
  try {
    values = parse(content) ?? {};
  } catch (error) {
    throw new QuarryError("invalid_input", `${path} is not valid YAML: ${messageOf(error)}`);
  }
  if (typeof values === "object" && !Array.isArray(values) && values !== null)
    return values as Record<string, unknown>;
  throw new QuarryError(
    "invalid_input",
    `${path} must hold names and values, such as "stale_task_timeout: 120"`,
  );
}
