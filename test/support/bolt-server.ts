import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type CypherEngine, type CypherTransaction, openCypherEngine } from "./cypher-engine.ts";
import { type Packed, pack, type Structure, unpack } from "./packstream.ts";

/**
 * A stand-in for Neo4j: it speaks Bolt 5.4 over real sockets and has each statement executed, as it came, by an
 * embedded engine. It can be told to fail as a server does. What it does not show is Neo4j itself: its planner, its
 * locks (writing transactions take turns here), and constraints and indexes on relationships, which the engine does
 * not know.
 */
export interface BoltServer {
  /** bolt://… */
  readonly url: string;
  /** Every statement that came, with the parameters of the last time. */
  readonly statements: ReadonlyMap<string, object>;
  /** How often a transaction was begun, committed and rolled back. */
  readonly counts: Readonly<Record<"begun" | "committed" | "rolledBack" | "connections", number>>;
  /** One for each of the next messages of its kind, in this order. */
  fail(...faults: BoltFault[]): void;
  /** Breaks all connections and listens no more, until `listen`. */
  leave(): Promise<void>;
  listen(): Promise<void>;
  close(): Promise<void>;
}

export interface BoltFault {
  readonly on: "BEGIN" | "RUN" | "COMMIT";
  /** Only statements with these words in them. */
  readonly statement?: string;
  /** Such as Neo.TransientError.Transaction.DeadlockDetected; "cut" breaks the connection. */
  readonly code: string;
  /** The work is done before it fails: only the answer is lost. */
  readonly isDone?: boolean;
}

export const BOLT_USER = "neo4j";
export const BOLT_PASSWORD = "canary-0123456789";
export const BOLT_DATABASE = "neo4j";

const MAGIC = 0x6060b017;
const VERSION = { major: 5, minor: 4 };
const MESSAGES = {
  1: "HELLO",
  2: "GOODBYE",
  15: "RESET",
  16: "RUN",
  17: "BEGIN",
  18: "COMMIT",
  19: "ROLLBACK",
  47: "DISCARD",
  63: "PULL",
  102: "ROUTE",
  106: "LOGON",
  107: "LOGOFF",
} as const;
const SUCCESS = 0x70;
const RECORD = 0x71;
const IGNORED = 0x7e;
const FAILURE = 0x7f;

export async function startBoltServer(): Promise<BoltServer> {
  const engine = openCypherEngine();
  const shared: Shared = {
    engine,
    writing: Promise.resolve(),
    statements: new Map(),
    counts: { begun: 0, committed: 0, rolledBack: 0, connections: 0 },
    faults: [],
    address: "",
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    shared.counts.connections++;
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    serve(shared, socket).catch(() => socket.destroy());
  });
  let port = 0;
  const listen = async () => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
    shared.address = `127.0.0.1:${port}`;
  };
  const leave = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  await listen();
  return {
    url: `bolt://127.0.0.1:${port}`,
    statements: shared.statements,
    counts: shared.counts,
    fail: (...faults) => void shared.faults.push(...faults),
    leave,
    listen,
    close: async () => {
      if (server.listening) await leave();
      engine.close();
    },
  };
}

interface Shared {
  readonly engine: CypherEngine;
  /** Ends when the last of those that write is through. */
  writing: Promise<void>;
  readonly statements: Map<string, object>;
  readonly counts: { begun: number; committed: number; rolledBack: number; connections: number };
  readonly faults: BoltFault[];
  address: string;
}

async function serve(shared: Shared, socket: Socket): Promise<void> {
  const conversation = new Conversation(shared, socket);
  try {
    let waiting = Buffer.alloc(0);
    let isGreeted = false;
    let parts: Buffer[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      waiting = Buffer.concat([waiting, chunk]);
      if (!isGreeted && waiting.length >= 20) {
        if (waiting.readUInt32BE() !== MAGIC) return void socket.destroy();
        socket.write(Buffer.of(0, 0, VERSION.minor, VERSION.major));
        waiting = waiting.subarray(20);
        isGreeted = true;
      }
      while (isGreeted && waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE()) {
        const length = waiting.readUInt16BE();
        if (length > 0) parts.push(waiting.subarray(2, 2 + length));
        else if (parts.length > 0) {
          await conversation.hear(unpack(Buffer.concat(parts)));
          parts = [];
        }
        waiting = waiting.subarray(2 + length);
      }
    }
  } finally {
    conversation.end();
  }
}

class Refusal extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

interface Opened {
  readonly transaction: CypherTransaction;
  readonly leave: () => void;
}

type Fields = Readonly<Record<string, Packed>>;

/** What one connection says, and is told. */
class Conversation {
  readonly #shared: Shared;
  readonly #socket: Socket;
  #opened: Opened | undefined;
  #rows: readonly (readonly Packed[])[] = [];
  #isAllowed = false;
  #hasFailed = false;

  constructor(shared: Shared, socket: Socket) {
    this.#shared = shared;
    this.#socket = socket;
  }

  async hear({ tag, fields }: Structure): Promise<void> {
    const name = MESSAGES[tag as keyof typeof MESSAGES];
    if (name === "RESET") {
      this.end();
      this.#hasFailed = false;
      return this.#say(SUCCESS, {});
    }
    if (this.#hasFailed) return this.#say(IGNORED);
    try {
      await this.#answer(name, fields);
    } catch (error) {
      this.#hasFailed = true;
      const code = error instanceof Refusal ? error.code : "Neo.ClientError.Statement.SyntaxError";
      this.#say(FAILURE, { code, message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** As when the connection is lost: what was not committed is undone. */
  end(): void {
    if (!this.#opened) return;
    this.#shared.counts.rolledBack++;
    this.#opened.transaction.rollback();
    this.#close();
  }

  async #answer(name: (typeof MESSAGES)[keyof typeof MESSAGES], fields: readonly Packed[]): Promise<void> {
    switch (name) {
      case "HELLO":
        return this.#say(SUCCESS, { server: "Neo4j/5.26.0", connection_id: "bolt-1", hints: {} });
      case "LOGON":
        return this.#logOn(fields[0] as Fields);
      case "LOGOFF":
        this.#isAllowed = false;
        return this.#say(SUCCESS, {});
      case "GOODBYE":
        return void this.#socket.end();
      case "ROUTE":
        return this.#say(SUCCESS, { rt: this.#routes() });
      case "BEGIN":
        return this.#begin(fields[0] as Fields);
      case "RUN":
        return this.#run(String(fields[0]), fields[1] as Fields, fields[2] as Fields);
      case "PULL":
        for (const row of this.#rows) this.#say(RECORD, row);
        return this.#say(SUCCESS, { type: "rw" });
      case "DISCARD":
        return this.#say(SUCCESS, { type: "rw" });
      case "COMMIT":
        return this.#commit();
      case "ROLLBACK":
        this.end();
        return this.#say(SUCCESS, {});
      default:
        throw new Refusal("Neo.ClientError.Request.Invalid", `${name} is not understood`);
    }
  }

  #logOn({ principal, credentials }: Fields): void {
    if (principal !== BOLT_USER || credentials !== BOLT_PASSWORD)
      throw new Refusal("Neo.ClientError.Security.Unauthorized", "The client is unauthorized");
    this.#isAllowed = true;
    this.#say(SUCCESS, {});
  }

  #routes(): Fields {
    const addresses = [this.#shared.address];
    const servers = ["ROUTE", "READ", "WRITE"].map((role) => ({ role, addresses }));
    return { ttl: 300n, db: BOLT_DATABASE, servers };
  }

  async #begin(extra: Fields): Promise<void> {
    this.#check(extra);
    this.#faultOf("BEGIN");
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#shared.writing;
    this.#shared.writing = before.then(() => promise);
    await before;
    this.#shared.counts.begun++;
    this.#opened = { transaction: this.#shared.engine.beginTransaction(), leave: resolve };
    this.#say(SUCCESS, {});
  }

  async #run(statement: string, params: Fields, extra: Fields): Promise<void> {
    this.#check(extra);
    this.#faultOf("RUN", statement);
    this.#shared.statements.set(statement, params);
    checkLimit(statement, params);
    const runner = this.#opened?.transaction ?? this.#shared.engine;
    const isKnown = !/FOR \(\)-\[/.test(statement);
    const result = isKnown ? await runner.executeCypher(statement, engineValue(params) as object) : undefined;
    const columns = result?.columns ?? [];
    this.#rows = (result?.toArray() ?? []).map((row) => columns.map((column) => boltValue(row[column])));
    this.#say(SUCCESS, { fields: columns, t_first: 0n });
  }

  #commit(): void {
    if (!this.#opened) throw new Refusal("Neo.ClientError.Request.Invalid", "nothing was begun");
    const fault = this.#takeFault("COMMIT");
    if (fault && !fault.isDone) this.#suffer(fault);
    this.#opened.transaction.commit();
    this.#shared.counts.committed++;
    this.#close();
    if (fault) this.#suffer(fault);
    this.#say(SUCCESS, {});
  }

  #close(): void {
    this.#opened?.leave();
    this.#opened = undefined;
  }

  #check({ db }: Fields): void {
    if (!this.#isAllowed) throw new Refusal("Neo.ClientError.Security.Unauthorized", "log on first");
    if (db !== undefined && db !== null && db !== BOLT_DATABASE)
      throw new Refusal("Neo.ClientError.Database.DatabaseNotFound", `Database ${db} does not exist`);
  }

  #faultOf(on: BoltFault["on"], statement = ""): void {
    const fault = this.#takeFault(on, statement);
    if (fault) this.#suffer(fault);
  }

  #takeFault(on: BoltFault["on"], statement = ""): BoltFault | undefined {
    const { faults } = this.#shared;
    const at = faults.findIndex((fault) => fault.on === on && statement.includes(fault.statement ?? ""));
    return at === -1 ? undefined : faults.splice(at, 1)[0];
  }

  #suffer({ code }: BoltFault): never {
    if (code === "cut") this.#socket.destroy();
    throw new Refusal(code, `as the test wants it: ${code}`);
  }

  #say(tag: number, field?: Packed): void {
    const bytes = pack({ tag, fields: field === undefined ? [] : [field] });
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += 0xffff) {
      const part = bytes.subarray(at, at + 0xffff);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(part.length);
      parts.push(length, part);
    }
    this.#socket.write(Buffer.concat([...parts, Buffer.of(0, 0)]));
  }
}

/** Neo4j takes whole numbers there and nothing else; drivers send what JavaScript calls a number as a float. */
function checkLimit(statement: string, params: Fields): void {
  const name = /\b(?:LIMIT|SKIP) \$(\w+)/.exec(statement)?.[1];
  if (name !== undefined && typeof params[name] !== "bigint")
    throw new Refusal("Neo.ClientError.Statement.ArgumentError", `$${name} is not an INTEGER`);
  for (const used of statement.matchAll(/\$(\w+)/g))
    if (!(used[1]! in params))
      throw new Refusal("Neo.ClientError.Statement.ParameterMissing", `Expected parameter(s): ${used[1]}`);
}

function engineValue(value: Packed): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map((item: Packed) => engineValue(item));
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, engineValue(item)]));
}

function boltValue(value: unknown): Packed {
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (Array.isArray(value)) return value.map(boltValue);
  return value as Packed;
}
