import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { chosenEmbedder } from "./adapters/embed/choice.ts";
import { S3_URL } from "./adapters/files/s3-url.ts";
import { VECTOR_STORES, type VectorStoreName } from "./adapters/vectors/choice.ts";
import { QuarryError } from "./errors.ts";
import { hideSecrets } from "./log.ts";
import { type Rag, type RagSettings, type Rags, readRags } from "./rag/settings.ts";
import { readSettingsFiles, type SettingsFile } from "./settings-files.ts";

const text = z.string("give a text").trim().min(1, "give a text");
/** What goes into a header as it stands. */
const oneLine = text.regex(/^[\x21-\x7e]+$/, "give it in one line, without spaces");
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
  machine: setting(
    "QUARRY_MACHINE",
    oneLine.max(255, "give at most 255 characters").optional(),
    undefined,
    "this machine's name: paths belong to it (default: the host's name; with SQLite there is only one machine)",
  ),
  filesUrl: setting(
    "QUARRY_FILES",
    z.string().regex(S3_URL, "give s3://BUCKET/PREFIX").optional(),
    undefined,
    "where originals and page files are kept: s3://BUCKET/PREFIX (default: the data folder)",
  ),
  s3Endpoint: setting(
    "AWS_ENDPOINT_URL_S3",
    z
      .url({ protocol: /^https?$/, error: "give http://… or https://…" })
      .refine((url) => !url.includes("@"), "give no key in it: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
      .optional(),
    undefined,
    "where that bucket's server listens (default: AWS)",
  ),
  s3Region: setting("AWS_REGION", text, "us-east-1", "the region of that bucket"),
  s3AccessKeyId: secret("AWS_ACCESS_KEY_ID", oneLine.optional(), "the key for that bucket: its id"),
  s3SecretAccessKey: secret("AWS_SECRET_ACCESS_KEY", oneLine.optional(), "the key itself"),
  s3SessionToken: secret("AWS_SESSION_TOKEN", oneLine.optional(), "what comes with a key that expires"),
  redisUrl: setting(
    "REDIS_URL",
    z.url({ protocol: /^rediss?$/, error: "give a URL such as redis://:PASSWORD@HOST:6379/0" }).optional(),
    undefined,
    "redis://… or rediss://… that carries the jobs of RAGs (default: the database does)",
  ),
  poolMax: setting(
    "QUARRY_DATABASE_POOL",
    count(1, 1_000),
    10,
    "connections to PostgreSQL that a process may open; two more are for heartbeats and wake-ups",
  ),
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
  taskStaleMs: setting(
    "QUARRY_TASK_STALE",
    secondsAsMs,
    1_800,
    "seconds after which a function task that others marked IN_PROGRESS and left is put back",
  ),
  taskRetentionDays: setting(
    "QUARRY_TASK_RETENTION_DAYS",
    count(1, 3_650),
    7,
    "days that function tasks, questions and their answers are kept after they ended",
  ),
  deadLetterDays: setting(
    "QUARRY_RAG_DEAD_LETTER_DAYS",
    count(1, 3_650),
    30,
    "days that jobs of RAGs which failed for good, and messages that are none, are kept as dead letters",
  ),
  tasksAtOnce: setting(
    "QUARRY_TASKS_AT_ONCE",
    count(1, 100),
    8,
    "function tasks that a process runs at once",
  ),
  functionsModule: setting(
    "QUARRY_FUNCTIONS",
    text.optional(),
    undefined,
    "a module that exports functions of your own, for tasks to name",
  ),
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
  vectors: setting(
    "QUARRY_VECTORS",
    z.enum(VECTOR_STORES, `give ${VECTOR_STORES.join(", ")}`).optional(),
    undefined,
    "where vectors are kept: embedded, pgvector or qdrant (default: qdrant with QDRANT_URL, else embedded)",
  ),
  qdrantUrl: setting(
    "QDRANT_URL",
    z.url({ protocol: /^https?$/, error: "give http://… or https://…" }).optional(),
    undefined,
    "where Qdrant listens",
  ),
  qdrantApiKey: secret("QDRANT_API_KEY", text.optional(), "the key for that Qdrant"),
  openaiApiKey: secret("OPENAI_API_KEY", text.optional(), "the key for that service"),
  modelTimeoutMs: setting(
    "QUARRY_MODEL_TIMEOUT",
    secondsAsMs,
    60,
    "seconds that a model service may take to answer",
  ),
  llm: setting(
    "QUARRY_LLM",
    z.string().regex(/^(none|ollama:\S+|openai:\S+)$/, "give none, ollama:MODEL or openai:MODEL"),
    "none",
    "what plans and writes answers: none (passages are quoted), ollama:MODEL or openai:MODEL",
  ),
  llmTimeoutMs: setting("QUARRY_LLM_TIMEOUT", secondsAsMs, 300, "seconds that a model may take to write"),
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
  modelRequestsPerMinute: setting(
    "QUARRY_MODEL_RPM",
    count(1, 10_000_000).optional(),
    undefined,
    "most requests a minute to one model service, from one process (default: no limit)",
  ),
  modelTokensPerMinute: setting(
    "QUARRY_MODEL_TPM",
    count(1_000, 1_000_000_000).optional(),
    undefined,
    "most tokens a minute of one model service, from one process (default: no limit)",
  ),
  entities: setting(
    "QUARRY_ENTITIES",
    z.enum(["local", "llm"], "give local or llm"),
    "local",
    "what finds entities and relations: local, or llm, the model of QUARRY_LLM",
  ),
  graph: setting(
    "QUARRY_GRAPH",
    z.enum(["sql", "neo4j"], "give sql or neo4j").optional(),
    undefined,
    "where entities and relations are kept: sql, beside the rows, or neo4j (default: neo4j with NEO4J_URL, else sql)",
  ),
  neo4jUrl: setting(
    "NEO4J_URL",
    z
      .url({ protocol: /^(bolt|neo4j)(\+s|\+ssc)?$/, error: "give a URL such as neo4j://HOST:7687" })
      .refine((url) => !url.includes("@"), "give the user in NEO4J_USER and the password in NEO4J_PASSWORD")
      .optional(),
    undefined,
    "where Neo4j listens: bolt://, neo4j:// or neo4j+s://",
  ),
  neo4jUser: setting("NEO4J_USER", text, "neo4j", "who asks Neo4j"),
  neo4jPassword: secret("NEO4J_PASSWORD", text.optional(), "the password of that user"),
  neo4jDatabase: setting(
    "NEO4J_DATABASE",
    text.optional(),
    undefined,
    "the database in Neo4j (default: the server's own)",
  ),
  ocr: setting(
    "QUARRY_OCR",
    z.string().regex(/^(local|openai:\S+)$/, "give local or openai:MODEL"),
    "local",
    "what reads scans: local, or openai:MODEL, a vision model",
  ),
  ocrUrl: setting(
    "QUARRY_OCR_URL",
    z.url({ protocol: /^https?$/ }).optional(),
    undefined,
    "the service of that model, when it is another than OPENAI_BASE_URL's",
  ),
  ocrApiKey: secret("QUARRY_OCR_API_KEY", text.optional(), "the key for QUARRY_OCR_URL"),
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
  readonly graph: "sql" | "neo4j";
  readonly vectors: VectorStoreName;
  readonly rags: Rags;
};

/** Settings as they are given in a call: RAGs in the words of quarry.yaml. */
export type GivenSettings = Partial<Omit<Settings, "rags">> & { readonly rags?: RagSettings };

export interface SettingSource {
  readonly name: string;
  readonly about: string;
  readonly value: unknown;
  readonly from: "environment" | SettingsFile | "default" | "call";
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
  readonly given?: GivenSettings;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The folder that may hold a quarry.yaml or configs/client/client.yaml. */
  readonly folder?: string;
  /** Told instead of thrown: the setting is then as if it were not set, or the part it belongs to cannot be used. */
  readonly onProblem?: (problem: SettingProblem) => void;
}

export interface SettingProblem {
  /** The setting, as it is called in the environment. */
  readonly name: string;
  readonly said: string;
}

/** Settings come from the call, then the environment, then quarry.yaml, then the contract's file, then defaults. */
export function loadSettings(input: SettingsInput = {}): {
  settings: Settings;
  sources: SettingSource[];
  /** What should not be as it is, but may be. */
  warnings: readonly string[];
} {
  const env = input.env ?? process.env;
  const refuse = (name: string, said: string): void => {
    if (!input.onProblem) throw new QuarryError("invalid_input", said);
    input.onProblem({ name, said });
  };
  const folder = input.folder ?? process.cwd();
  const names = Object.values(SETTINGS).map(({ name }) => name);
  const { values: file, rags: filedRags, warnings } = readSettingsFiles(folder, names);
  const sources: SettingSource[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, declared] of Object.entries(SETTINGS)) {
    const { name, schema, fallback, about, isSecret }: Setting<z.ZodType> = declared;
    const shown = (value: unknown) => {
      if (isSecret && value !== undefined) return "[hidden]";
      return typeof value === "string" ? hideSecrets(value) : value;
    };
    const given = input.given?.[key as keyof typeof SETTINGS];
    if (given !== undefined) {
      values[key] = given;
      sources.push({ name, about, value: shown(given), from: "call" });
      continue;
    }
    const fromEnv = env[name] === "" ? undefined : env[name];
    const { value: fromFile, file: path } = file.get(name) ?? {};
    if (isSecret && fromFile !== undefined) {
      refuse(
        name,
        `${name} is in ${path}: a secret is only taken from the environment; remove it from the file`,
      );
    }
    const raw = fromEnv ?? (isSecret ? undefined : fromFile) ?? fallback;
    const parsed = schema.safeParse(raw);
    if (!parsed.success) {
      const where = fromEnv === undefined ? path : "the environment";
      refuse(
        name,
        `${name} in ${where} is ${JSON.stringify(shown(raw))}: ${parsed.error.issues[0]?.message} (${about})`,
      );
    }
    values[key] = parsed.success ? parsed.data : schema.parse(fallback);
    const from = fromEnv !== undefined ? "environment" : (path ?? "default");
    sources.push({ name, about, value: shown(raw), from });
  }
  const settings = values as unknown as Settings;
  const { model } = chosenEmbedder(settings.embedder);
  const rags = new Map<string, Rag>();
  const given = input.given?.rags ? [{ where: "the call", rags: input.given.rags }] : undefined;
  for (const { where, rags: named } of given ?? filedRags)
    for (const [id, rag] of readRags(named, { folder, where, model })) if (!rags.has(id)) rags.set(id, rag);
  return {
    settings: checked(refuse, {
      ...settings,
      databaseUrl: databaseUrlOf(settings),
      machine: settings.machine ?? (isPostgres(databaseUrlOf(settings)) ? hostname() : undefined),
      vectors: settings.vectors ?? (settings.qdrantUrl === undefined ? "embedded" : "qdrant"),
      graph: settings.graph ?? (settings.neo4jUrl === undefined ? "sql" : "neo4j"),
      rags,
    }),
    sources,
    warnings,
  };
}

function databaseUrlOf({ databaseUrl, dataFolder }: Settings): string {
  return databaseUrl ?? join(dataFolder, "quarry.db");
}

function isPostgres(databaseUrl: string): boolean {
  return /^postgres(ql)?:/.test(databaseUrl);
}

function checked(refuse: (name: string, said: string) => void, settings: Settings): Settings {
  if (settings.heartbeatMs * 2 > settings.staleMs)
    refuse(
      "HEARTBEAT_INTERVAL",
      `HEARTBEAT_INTERVAL (${settings.heartbeatMs / 1000} s) must be at most half of STALE_TASK_TIMEOUT (${settings.staleMs / 1000} s), or live workers lose their tasks`,
    );
  if (settings.filesUrl !== undefined && !(settings.s3AccessKeyId && settings.s3SecretAccessKey))
    refuse(
      "QUARRY_FILES",
      "QUARRY_FILES is a bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    );
  if (settings.vectors === "qdrant" && settings.qdrantUrl === undefined)
    refuse(
      "QUARRY_VECTORS",
      "QUARRY_VECTORS is qdrant: set QDRANT_URL to where it listens, such as http://127.0.0.1:6333",
    );
  if (settings.vectors === "pgvector" && !isPostgres(settings.databaseUrl))
    refuse("QUARRY_VECTORS", "QUARRY_VECTORS is pgvector: set DATABASE_URL to the PostgreSQL that has it");
  if (settings.graph === "neo4j" && settings.neo4jUrl === undefined)
    refuse(
      "QUARRY_GRAPH",
      "QUARRY_GRAPH is neo4j: set NEO4J_URL to where it listens, such as neo4j://127.0.0.1:7687",
    );
  if (settings.entities === "llm" && settings.llm === "none")
    refuse("QUARRY_ENTITIES", "QUARRY_ENTITIES is llm: set QUARRY_LLM to the model, such as ollama:MODEL");
  return settings;
}
