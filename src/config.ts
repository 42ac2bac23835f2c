import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { messageOf, QuarryError } from "./errors.ts";

const text = z.string("give a text").trim().min(1, "give a text");
const flag = z.union([z.boolean(), z.stringbool()], "give true or false");
const count = (min: number, max: number) => {
  const said = `give a whole number from ${min} to ${max}`;
  return z.coerce.number(said).int(said).min(min, said).max(max, said);
};
const SECONDS = "give seconds, from 0.1 to 86400";
/** Given in seconds, as the names of these settings have always been read. */
const secondsAsMs = z.coerce
  .number(SECONDS)
  .min(0.1, SECONDS)
  .max(86_400, SECONDS)
  .transform((seconds) => Math.round(seconds * 1000));

/** Every setting: its name in the environment and in quarry.yaml (in lower case there), and what it means. */
const SETTINGS = {
  dataFolder: setting("QUARRY_DATA", text, ".quarry", "folder of the database, page files and the index"),
  databaseUrl: setting("DATABASE_URL", text.optional(), undefined, "postgres://… or a SQLite file"),
  isEnabled: setting("TASK_QUEUE_ENABLED", flag, true, "false: workers start no lanes"),
  checkEveryMs: setting("TASK_QUEUE_CHECK_INTERVAL", secondsAsMs, 60, "seconds between the janitor's rounds"),
  pollMs: setting("WORKER_POLL_INTERVAL", secondsAsMs, 5, "seconds between looks for work without a wake-up"),
  heartbeatMs: setting("HEARTBEAT_INTERVAL", secondsAsMs, 30, "seconds between heartbeats"),
  staleMs: setting(
    "STALE_TASK_TIMEOUT",
    secondsAsMs,
    120,
    "seconds of silence after which a task is given on",
  ),
  attemptsMax: setting("MAX_TASK_RETRIES", count(1, 100), 3, "tries before a task has failed for good"),
  embedder: setting(
    "QUARRY_EMBEDDER",
    z.string().regex(/^(local|ollama(:\S+)?|openai:\S+)$/, "give local, ollama:MODEL or openai:MODEL"),
    "local",
    "what makes vectors: local, ollama:MODEL or openai:MODEL",
  ),
  ollamaHost: setting("OLLAMA_HOST", text, "http://127.0.0.1:11434", "where Ollama listens"),
  openaiBaseUrl: setting(
    "OPENAI_BASE_URL",
    z.url({ protocol: /^https?$/ }),
    "https://api.openai.com/v1",
    "an OpenAI-compatible service",
  ),
  openaiApiKey: secret("OPENAI_API_KEY", text.optional(), "the key for that service"),
  modelTimeoutMs: setting(
    "QUARRY_MODEL_TIMEOUT",
    secondsAsMs,
    60,
    "seconds that a model service may take to answer",
  ),
  embeddingModel: setting(
    "QUARRY_EMBEDDING_MODEL",
    text.max(100).optional(),
    undefined,
    "model of embedding jobs, when workers elsewhere make their vectors (default: the embedder's own)",
  ),
  embeddingBatch: setting("QUARRY_EMBEDDING_BATCH", count(1, 2_048), 50, "most texts in one call of a model"),
  embeddingBatchTokens: setting(
    "QUARRY_EMBEDDING_BATCH_TOKENS",
    count(100, 1_000_000),
    50_000,
    "most tokens in one call of a model",
  ),
  ocrLanguages: setting("QUARRY_OCR_LANGUAGES", text, "eng", "languages of scans, joined by +"),
  ocrThreads: setting(
    "QUARRY_OCR_THREADS",
    count(1, 64),
    Math.max(1, availableParallelism() - 1),
    "pages read by OCR at once",
  ),
  fileMbMax: setting("QUARRY_FILE_MB_MAX", count(1, 100_000), 200, "largest file that is taken, in MB"),
  pagesMax: setting("QUARRY_PAGES_MAX", count(1, 1_000_000), 10_000, "most pages a document may have"),
  isFetching: setting(
    "QUARRY_FETCH",
    flag,
    false,
    "true: documentation of libraries may be fetched from public addresses",
  ),
  host: setting(
    "QUARRY_HOST",
    text,
    "127.0.0.1",
    "address the server listens on; others than this machine's own need a key",
  ),
  port: setting("QUARRY_PORT", count(0, 65_535), 7310, "port the server listens on; 0 takes a free one"),
  apiKey: secret("QUARRY_API_KEY", text.optional(), "keys of the server, such as KEY or read=KEY1,work=KEY2"),
  allowedHosts: setting(
    "QUARRY_ALLOWED_HOSTS",
    text.optional(),
    undefined,
    "names under which the server may be asked, joined by commas, besides its address",
  ),
  rateLimit: setting("QUARRY_RATE_LIMIT", count(1, 10_000_000), 60_000, "requests a minute for one key"),
  bodyMbMax: setting("QUARRY_BODY_MB_MAX", count(1, 1_000), 8, "largest body of a request, in MB"),
  diskFreeMbMin: setting(
    "QUARRY_DISK_FREE_MB_MIN",
    count(0, 100_000_000),
    100,
    "with less disk space than this, in MB, the server says that it is not ready",
  ),
  logLevel: setting(
    "QUARRY_LOG",
    z.enum(["silent", "error", "warn", "info", "debug"]),
    "warn",
    "how much is logged to standard error",
  ),
} as const;

export type Settings = {
  readonly [Name in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[Name]["schema"]>;
} & {
  readonly databaseUrl: string;
};

export interface SettingSource {
  readonly name: string;
  readonly about: string;
  readonly value: unknown;
  readonly from: "environment" | "quarry.yaml" | "default" | "call";
}

interface Setting<Schema extends z.ZodType> {
  readonly name: string;
  readonly schema: Schema;
  readonly fallback: unknown;
  readonly about: string;
  /** Only from the environment: files are copied, shown and committed. */
  readonly isSecret?: true;
}

function secret<Schema extends z.ZodType>(name: string, schema: Schema, about: string): Setting<Schema> {
  return { name, schema, fallback: undefined, about, isSecret: true };
}

function setting<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  fallback: unknown,
  about: string,
): Setting<Schema> {
  return { name, schema, fallback, about };
}

export interface SettingsInput {
  /** Win over everything else; the library's way. */
  readonly given?: Partial<Settings>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The folder that may hold a quarry.yaml. */
  readonly folder?: string;
}

/** Settings come from the call, then the environment, then quarry.yaml, then defaults. */
export function loadSettings(input: SettingsInput = {}): {
  settings: Settings;
  sources: SettingSource[];
} {
  const env = input.env ?? process.env;
  const file = readSettingsFile(input.folder ?? process.cwd());
  const sources: SettingSource[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, declared] of Object.entries(SETTINGS)) {
    const { name, schema, fallback, about, isSecret }: Setting<z.ZodType> = declared;
    const shown = (value: unknown) => (isSecret && value !== undefined ? "[hidden]" : value);
    const given = input.given?.[key as keyof Settings];
    if (given !== undefined) {
      values[key] = given;
      sources.push({ name, about, value: shown(given), from: "call" });
      continue;
    }
    const fromEnv = env[name] === "" ? undefined : env[name];
    const fromFile = file.get(name);
    if (isSecret && fromFile !== undefined) {
      throw new QuarryError(
        "invalid_input",
        `${name} is in quarry.yaml: a secret is only taken from the environment; remove it from the file`,
      );
    }
    const raw = fromEnv ?? fromFile ?? fallback;
    const parsed = schema.safeParse(raw);
    if (!parsed.success) {
      const where = fromEnv === undefined ? "quarry.yaml" : "the environment";
      throw new QuarryError(
        "invalid_input",
        `${name} in ${where} is ${JSON.stringify(shown(raw))}: ${parsed.error.issues[0]?.message} (${about})`,
      );
    }
    values[key] = parsed.data;
    const from = fromEnv !== undefined ? "environment" : fromFile !== undefined ? "quarry.yaml" : "default";
    sources.push({ name, about, value: shown(raw), from });
  }
  const settings = values as unknown as Settings;
  return { settings: checked({ ...settings, databaseUrl: databaseUrlOf(settings) }), sources };
}

function databaseUrlOf({ databaseUrl, dataFolder }: Settings): string {
  return databaseUrl ?? join(dataFolder, "quarry.db");
}

function checked(settings: Settings): Settings {
  if (settings.heartbeatMs * 2 <= settings.staleMs) return settings;
  throw new QuarryError(
    "invalid_input",
    `HEARTBEAT_INTERVAL (${settings.heartbeatMs / 1000} s) must be at most half of STALE_TASK_TIMEOUT (${settings.staleMs / 1000} s), or live workers lose their tasks`,
  );
}

function readSettingsFile(folder: string): Map<string, unknown> {
  const path = join(folder, "quarry.yaml");
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch {
    return new Map();
  }
  let values: unknown;
  try {
    values = parse(content) ?? {};
  } catch (error) {
    throw new QuarryError("invalid_input", `${path} is not valid YAML: ${messageOf(error)}`);
  }
  if (typeof values !== "object" || Array.isArray(values) || values === null) {
    throw new QuarryError(
      "invalid_input",
      `${path} must hold names and values, such as "stale_task_timeout: 120"`,
    );
  }
  const known = new Set(Object.values(SETTINGS).map(({ name }) => name));
  const entries = Object.entries(values).map(([name, value]) => [name.toUpperCase(), value] as const);
  const unknown = entries.filter(([name]) => !known.has(name)).map(([name]) => name.toLowerCase());
  if (unknown.length > 0) {
    throw new QuarryError(
      "invalid_input",
      `${path} has ${unknown.join(", ")}, which is no setting; there are ${[...known].map((name) => name.toLowerCase()).join(", ")}`,
    );
  }
  return new Map(entries);
}
