import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import pg from "pg";

export interface Services {
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** Which servers these are, for people: product, version, and whether they were started here. */
  readonly description: string;
  /** Stops PostgreSQL the way a crash does and starts it again, on the same port and data. */
  restartPostgres(): Promise<void>;
  stop(): Promise<void>;
}

export interface Server {
  readonly url: string;
  readonly description: string;
  restart(): Promise<void>;
  /** The two halves of a restart. */
  quit(): Promise<void>;
  launch(): Promise<void>;
  stop(): Promise<void>;
}

const STARTS_MAX = 5;
const POLL_EVERY_MS = 50;
const POLLS_MAX = 1200;
const ANSWER_WITHIN_MS = 5_000;
const QUIT_WITHIN_MS = 10_000;

/**
 * Servers for tests: those of TEST_DATABASE_URL and TEST_REDIS_URL where set, else private ones. Private servers
 * and their folders go away with this process however it ends, even by SIGKILL: see `guard`.
 */
export async function startServices(
  options: { postgres?: boolean; redis?: boolean; isSynced?: boolean } = {},
): Promise<Services> {
  const postgres =
    (options.postgres ?? true) ? await openPostgres({ isSynced: options.isSynced ?? true }) : undefined;
  let redis: Server | undefined;
  try {
    redis = (options.redis ?? true) ? await openRedis() : undefined;
  } catch (error) {
    await postgres?.stop();
    throw error;
  }
  const asked = (server: Server | undefined, name: string): Server => {
    if (server === undefined) throw new Error(`startServices was told to leave ${name} out`);
    return server;
  };
  return {
    get postgresUrl() {
      return asked(postgres, "PostgreSQL").url;
    },
    get redisUrl() {
      return asked(redis, "Redis").url;
    },
    description: [postgres, redis].flatMap((server) => server?.description ?? []).join(", "),
    restartPostgres: () => asked(postgres, "PostgreSQL").restart(),
    stop: async () => {
      await Promise.all([postgres?.stop(), redis?.stop()]);
    },
  };
}

// ---- PostgreSQL

/**
 * Unsynced, commits do not wait for the disk. What is killed, server or client, loses nothing by it: only the machine's
 * own end would.
 */
async function openPostgres({ isSynced }: { isSynced: boolean }): Promise<Server> {
  const external = process.env.TEST_DATABASE_URL;
  if (external) {
    const { version } = await reachable("TEST_DATABASE_URL", () => askPostgres(external));
    return externalServer({
      url: external,
      description: `PostgreSQL ${version}`,
      variable: "TEST_DATABASE_URL",
    });
  }
  const bin = await findOrInstall(findPostgres, {
    name: "PostgreSQL",
    aptPackage: "postgresql",
    brewPackage: "postgresql@17",
    variable: "TEST_DATABASE_URL",
  });
  const guardian = await Guardian.start(await unprivilegedOwner());
  const data = join(guardian.folder, "data");
  const urlOf = (port: number) => `postgres://postgres@127.0.0.1:${port}/postgres`;
  return startServer(guardian, {
    name: "PostgreSQL",
    prepare: {
      command: join(bin, "initdb"),
      args: ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
      quitSignal: "SIGTERM",
    },
    server: (port) => ({
      command: join(bin, "postgres"),
      args: [
        ...["-D", data, "-p", `${port}`, "-c", "listen_addresses=127.0.0.1"],
        ...["-c", "unix_socket_directories=", "-c", "max_connections=200"],
        ...["-c", `fsync=${isSynced ? "on" : "off"}`],
      ],
      quitSignal: "SIGQUIT",
    }),
    urlOf,
    ask: async (url) => {
      const answer = await askPostgres(url);
      return { isOurs: answer.data === data, product: `PostgreSQL ${answer.version}` };
    },
  });
}

function findPostgres(): string | undefined {
  const isComplete = (folder: string) =>
    ["initdb", "postgres"].every((name) => existsSync(join(folder, name)));
  const newestFirst = (pattern: string) =>
    globSync(pattern).sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  return [
    ...pathFolders(),
    ...newestFirst("/usr/lib/postgresql/*/bin"),
    ...newestFirst("/usr/pgsql-*/bin"),
    ...newestFirst("/opt/homebrew/opt/postgresql*/bin"),
    ...newestFirst("/usr/local/opt/postgresql*/bin"),
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/usr/local/pgsql/bin",
  ].find(isComplete);
}

async function askPostgres(url: string): Promise<{ version: string; data: string | null }> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: ANSWER_WITHIN_MS });
  // A server that goes away between two answers also reports it here; the query below fails anyway.
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; data: string | null }>(`
      select split_part(current_setting('server_version'), ' ', 1) as version,
             (select setting from pg_settings where name = 'data_directory') as data`);
    return rows[0]!;
  } finally {
    await client.end().catch(() => undefined);
  }
}

// ---- Redis

async function openRedis(): Promise<Server> {
  const external = process.env.TEST_REDIS_URL;
  if (external) {
    const { product } = await reachable("TEST_REDIS_URL", () => askRedis(external));
    return externalServer({ url: external, description: product, variable: "TEST_REDIS_URL" });
  }
  const command = await findOrInstall(findRedis, {
    name: "Redis",
    aptPackage: "redis-server",
    brewPackage: "redis",
    variable: "TEST_REDIS_URL",
  });
  return launchRedis(command);
}

export interface RedisOptions {
  /** Settings of the server beside those that every private one has. */
  readonly args?: readonly string[];
  readonly password?: string;
  /** SIGKILL: ends as in a crash. */
  readonly quitSignal?: NodeJS.Signals;
}

/** A Redis of one test's own, to be stopped, started again, filled up or locked. */
export async function startRedis(options: RedisOptions = {}): Promise<Server> {
  const command = findRedis();
  if (command === undefined) throw new Error("there is no redis-server or valkey-server on the PATH");
  return launchRedis(command, options);
}

async function launchRedis(command: string, options: RedisOptions = {}): Promise<Server> {
  const guardian = await Guardian.start(undefined);
  const { args = [], password, quitSignal = "SIGTERM" } = options;
  return startServer(guardian, {
    name: "Redis",
    server: (port) => ({
      command,
      args: [
        ...["--bind", "127.0.0.1", "--port", `${port}`, "--dir", guardian.folder],
        ...["--appendonly", "yes", "--save", "", "--daemonize", "no"],
        ...(password === undefined ? [] : ["--requirepass", password]),
        ...args,
      ],
      quitSignal,
    }),
    urlOf: (port) => `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}`,
    ask: async (url) => {
      const answer = await askRedis(url);
      return { isOurs: answer.pid === guardian.pid, product: answer.product };
    },
  });
}

function findRedis(): string | undefined {
  return ["redis-server", "valkey-server"]
    .flatMap((name) => pathFolders().map((folder) => join(folder, name)))
    .find((file) => existsSync(file));
}

async function askRedis(address: string): Promise<{ product: string; pid: number }> {
  const url = new URL(address);
  const target = { host: url.hostname || "127.0.0.1", port: Number(url.port || 6379) };
  const socket: Socket = url.protocol === "rediss:" ? connectTls(target) : connect(target);
  socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy(new Error(`${url.host} did not answer`)));
  if (url.password) {
    const credentials = [url.username, url.password].filter(Boolean).map(decodeURIComponent);
    socket.write(respCommand("AUTH", ...credentials));
  }
  socket.write(respCommand("INFO", "server"));
  // After QUIT the server closes the connection, so that everything read is the whole answer.
  socket.write(respCommand("QUIT"));
  const answer = await text(socket);
  const field = (name: string) => answer.match(new RegExp(`^${name}:(.*?)\\r?$`, "m"))?.[1];
  const valkey = field("valkey_version");
  const product = valkey ? `Valkey ${valkey}` : `Redis ${field("redis_version")}`;
  const pid = Number(field("process_id"));
  if (!pid) throw new Error(`${url.host} answered ${JSON.stringify(answer.slice(0, 200))} to INFO`);
  return { product, pid };
}

function respCommand(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

// ---- Servers of either kind

export function externalServer(server: { url: string; description: string; variable: string }): Server {
  const refuse = async () => {
    throw new Error(
      `the server of ${server.variable} was not started here, so it cannot be restarted; unset it`,
    );
  };
  return {
    url: server.url,
    description: `${server.description} (external, ${server.variable})`,
    restart: refuse,
    quit: refuse,
    launch: refuse,
    stop: async () => undefined,
  };
}

export async function reachable<T>(variable: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    throw new Error(`the server of ${variable} cannot be used: ${reason}`, { cause });
  }
}

export interface Recipe {
  readonly name: string;
  /** Runs to its end before the first start. */
  readonly prepare?: Program;
  readonly server: (port: number) => Program;
  readonly urlOf: (port: number) => string;
  /** Another server may have taken the port first and answer in our place, so the answer says whose it is. */
  readonly ask: (url: string) => Promise<{ isOurs: boolean; product: string }>;
}

export async function startServer(guardian: Guardian, recipe: Recipe): Promise<Server> {
  try {
    if (recipe.prepare) {
      await guardian.launch(recipe.prepare);
      if ((await guardian.exited()) !== 0) throw await guardian.failure(`${recipe.name} could not be set up`);
    }
    for (let start = 1; start <= STARTS_MAX; start++) {
      const port = await freePort();
      const product = await launchAndAsk(guardian, recipe, port);
      if (product === undefined) continue;
      return {
        url: recipe.urlOf(port),
        description: `${product} (started, port ${port})`,
        restart: async () => {
          await guardian.quit();
          await launchAgain(guardian, recipe, port);
        },
        quit: () => guardian.quit(),
        launch: () => launchAgain(guardian, recipe, port),
        stop: () => guardian.stop(),
      };
    }
    throw await guardian.failure(`${recipe.name} did not start in ${STARTS_MAX} attempts`);
  } catch (error) {
    await guardian.stop();
    throw error;
  }
}

async function launchAgain(guardian: Guardian, recipe: Recipe, port: number): Promise<void> {
  // A client that reconnects all the while can be given this very port as its own; it lets go when refused.
  for (let start = 1; start <= STARTS_MAX; start++) {
    if ((await launchAndAsk(guardian, recipe, port)) !== undefined) return;
    await pause(POLL_EVERY_MS * start);
  }
  throw await guardian.failure(`${recipe.name} did not come back on port ${port}`);
}

/** What answers, or undefined when the server gave up, most often because the port was taken meanwhile. */
async function launchAndAsk(guardian: Guardian, recipe: Recipe, port: number): Promise<string | undefined> {
  await guardian.launch(recipe.server(port));
  for (let poll = 0; poll < POLLS_MAX; poll++) {
    if (!guardian.isRunning) return undefined;
    const answer = await recipe.ask(recipe.urlOf(port)).catch(() => undefined);
    if (answer?.isOurs) return answer.product;
    await pause(POLL_EVERY_MS);
  }
  throw await guardian.failure(`${recipe.name} runs but does not answer on port ${port}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

// ---- What the machine has

const run = promisify(execFile);

interface Installable {
  readonly name: string;
  readonly aptPackage: string;
  readonly brewPackage?: string;
  readonly variable: string;
}

export async function findOrInstall(find: () => string | undefined, server: Installable): Promise<string> {
  const present = find();
  if (present !== undefined) return present;
  const onMacOs = server.brewPackage === undefined ? "" : `; macOS: brew install ${server.brewPackage}`;
  const advice =
    `install it (Debian, Ubuntu: apt-get install ${server.aptPackage}${onMacOs}) ` +
    `or set ${server.variable} to the URL of a server that tests may use`;
  const hasApt = pathFolders().some((folder) => existsSync(join(folder, "apt-get")));
  if (!hasApt || process.getuid?.() !== 0) throw new Error(`${server.name} was not found: ${advice}`);

  process.stderr.write(`${server.name} was not found: installing ${server.aptPackage} with apt-get\n`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    await run("apt-get", ["update"], { env });
    await run("apt-get", ["install", "-y", "--no-install-recommends", server.aptPackage], { env });
  } catch (cause) {
    throw new Error(`${server.name} was not found and apt-get failed: ${advice}`, { cause });
  }
  const installed = find();
  if (installed === undefined) {
    throw new Error(`apt-get installed ${server.aptPackage}, yet ${server.name} was not found: ${advice}`);
  }
  return installed;
}

function pathFolders(): string[] {
  return (process.env.PATH ?? "").split(delimiter).filter(Boolean);
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as root. */
async function unprivilegedOwner(): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const user of ["postgres", "nobody"]) {
    try {
      const [uid, gid] = await Promise.all([run("id", ["-u", user]), run("id", ["-g", user])]);
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
    } catch {
      // No such user: the next one.
    }
  }
  throw new Error("PostgreSQL refuses to run as root and there is neither a user `postgres` nor `nobody`");
}

// ---- The guardian: a process that owns one server and its folder, and outlives us just long enough to end both

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** Ends it at once, whatever its clients are doing. */
  readonly quitSignal: NodeJS.Signals;
}

type Order = { readonly kind: "launch"; readonly program: Program } | { readonly kind: "quit" };
type Report =
  | { readonly kind: "ready"; readonly folder: string }
  | { readonly kind: "launched"; readonly pid: number | undefined }
  | { readonly kind: "exited"; readonly code: number | null };

const LOG = "server.log";

/** Our end of the line to a guardian. */
export class Guardian {
  folder = "";
  pid: number | undefined;
  readonly #process: ChildProcess;
  #exitCode: number | null | undefined;

  static async start(owner: Owner | undefined): Promise<Guardian> {
    const guardian = new Guardian(owner);
    await guardian.#until(() => guardian.folder !== "");
    return guardian;
  }

  private constructor(owner: Owner | undefined) {
    // Detached, so that Ctrl-C in a terminal ends us and not the guardian. Of the environment it gets nothing that
    // could configure node, its test runner or PostgreSQL.
    this.#process = fork(import.meta.filename, [JSON.stringify(owner ?? null)], {
      detached: true,
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      execArgv: [],
      env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, LC_ALL: "C" },
    });
    this.#process.on("message", (report: Report) => this.#note(report));
    // Being ended with us is its purpose; it must not keep us running.
    this.#process.unref();
    this.#process.channel?.unref();
  }

  get isRunning(): boolean {
    return this.pid !== undefined && this.#exitCode === undefined;
  }

  async launch(program: Program): Promise<void> {
    this.pid = undefined;
    this.#exitCode = undefined;
    this.#order({ kind: "launch", program });
    await this.#until(() => this.pid !== undefined || this.#exitCode !== undefined);
  }

  async exited(): Promise<number | null> {
    await this.#until(() => this.#exitCode !== undefined);
    return this.#exitCode ?? null;
  }

  async quit(): Promise<void> {
    if (!this.isRunning) return;
    this.#order({ kind: "quit" });
    await this.exited();
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, "exit");
    this.#process.ref();
    if (this.#process.connected) this.#process.disconnect();
    await gone;
  }

  async failure(message: string): Promise<Error> {
    const log = await readFile(join(this.folder, LOG), "utf8").catch(() => "");
    return new Error(`${message}; its last words:\n${log.trimEnd().split("\n").slice(-15).join("\n")}`);
  }

  #order(order: Order): void {
    this.#process.send(order, () => undefined);
  }

  #note(report: Report): void {
    switch (report.kind) {
      case "ready":
        this.folder = report.folder;
        return;
      case "launched":
        this.pid = report.pid;
        return;
      case "exited":
        this.#exitCode = report.code;
        return;
      default:
        report satisfies never;
    }
  }

  async #until(isReached: () => boolean): Promise<void> {
    if (isReached()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onMessage = () => isReached() && resolve();
    const onExit = () => reject(new Error("the guardian of a test server ended unexpectedly"));
    this.#process.on("message", onMessage).once("exit", onExit);
    this.#process.channel?.ref();
    try {
      await promise;
    } finally {
      this.#process.off("message", onMessage).off("exit", onExit);
      this.#process.channel?.unref();
    }
  }
}

/**
 * The guardian's program. The line to the process that started it breaks however that process ends; then the server
 * is ended and the folder removed. The guardian makes the folder and starts the server itself, because anything
 * started elsewhere and told to it later could be missed.
 */
function guard(owner: Owner | undefined): void {
  if (!process.connected) return;
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "quarry-test-"));
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const log = openSync(join(folder, LOG), "a");
  const report = (message: Report) => process.connected && process.send?.(message, () => undefined);
  let server: ChildProcess | undefined;
  let quitSignal: NodeJS.Signals = "SIGTERM";
  let isLeaving = false;

  const launch = (program: Program) => {
    quitSignal = program.quitSignal;
    const child = spawn(program.command, program.args, {
      cwd: folder,
      stdio: ["ignore", log, log],
      ...owner,
    });
    const ended = (code: number | null) => {
      server = undefined;
      report({ kind: "exited", code });
      if (isLeaving) removeAndExit();
    };
    server = child;
    child.once("exit", ended);
    child.once("error", (error) => {
      appendFileSync(log, `${error.message}\n`);
      if (child.pid === undefined) ended(null);
    });
    if (child.pid !== undefined) report({ kind: "launched", pid: child.pid });
  };
  const quit = () => {
    const child = server;
    if (child === undefined) return;
    child.kill(quitSignal);
    const timer = setTimeout(() => child.kill("SIGKILL"), QUIT_WITHIN_MS);
    child.once("exit", () => clearTimeout(timer));
  };
  const removeAndExit = () => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    process.exit();
  };
  const leave = () => {
    isLeaving = true;
    if (server === undefined) removeAndExit();
    else quit();
  };

  process.on("message", (order: Order) => {
    switch (order.kind) {
      case "launch":
        return launch(order.program);
      case "quit":
        return quit();
      default:
        return order satisfies never;
    }
  });
  process.on("disconnect", leave);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, leave);
  report({ kind: "ready", folder });
}

if (import.meta.main) guard(JSON.parse(process.argv[2] ?? "null") ?? undefined);
