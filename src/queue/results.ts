import type { Database, Row, Statement } from "../database/database.ts";
import { type BatchEntry, isPacked, type Json, type Packed, type PackedKind } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { kindOf, type Queue } from "./declaration.ts";
import { stringify } from "./enqueue.ts";
import type { Ticket } from "./outcome.ts";
import { type Completion, compileCompletion } from "./statements.ts";
import { cleanValue, isStorable } from "./text.ts";

const STATEMENTS_CACHED_MAX = 200;

/** Writes down results: rows that give the same columns go into one statement, which touches no other column. */
export class Results {
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #completions = new Map<string, Completion>();

  constructor(database: Database, queue: Queue) {
    this.#database = database;
    this.#queue = queue;
  }

  /** The columns that a result gives, in the order they were declared. */
  columnsOf(result: Row): string[] {
    for (const name in result) {
      if (this.#queue.results.includes(name)) continue;
      throw new QuarryError("invalid_input", `queue ${this.#queue.name} declares no result column ${name}`);
    }
    return this.#queue.results.filter((name) => result[name] !== undefined);
  }

  batchOf(columns: readonly string[]): ResultBatch {
    return new ResultBatch(this.#database, this.#queue, { columns, ...this.#completion(columns) });
  }

  #completion(columns: readonly string[]): Completion {
    const shape = columns.join(",");
    const known = this.#completions.get(shape);
    if (known) return known;
    const completion = compileCompletion(this.#queue, this.#database.dialect, columns);
    if (this.#completions.size < STATEMENTS_CACHED_MAX) this.#completions.set(shape, completion);
    return completion;
  }
}

const PACKED = { blob: [Uint8Array, "a Uint8Array"], floats: [Float32Array, "a Float32Array"] } as const;

/** The values of one column, one behind the other. */
interface Pack {
  readonly name: string;
  readonly kind: PackedKind;
  readonly values: Packed[];
  length: number;
}

/** Rows that complete with values for the same columns. */
export class ResultBatch implements Completion {
  readonly statement: Statement;
  readonly unnamed: Statement | undefined;
  readonly entries: BatchEntry[] = [];
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #written: readonly string[];
  readonly #packs: readonly Pack[];

  constructor(
    database: Database,
    queue: Queue,
    { columns, statement, unnamed }: Completion & { columns: readonly string[] },
  ) {
    this.statement = statement;
    this.unnamed = unnamed;
    this.#database = database;
    this.#queue = queue;
    this.#written = columns.filter((name) => !isPacked(kindOf(queue, name)));
    this.#packs = columns.flatMap((name) => {
      const kind = kindOf(queue, name);
      return isPacked(kind) ? [{ name, kind, values: [], length: 0 }] : [];
    });
  }

  add({ key, token }: Ticket, result: Row): void {
    const places = this.#packs.flatMap((pack) => this.#place(pack, result[pack.name]));
    const results = this.#written.length > 0 ? [this.#encode(result)] : [];
    this.entries.push([key, token, ...places, ...results]);
  }

  params(): unknown[] {
    const { dialect } = this.#database;
    return [
      ...dialect.batchParams(this.entries),
      ...this.#packs.map(({ kind, values }) => dialect.pack(kind, values)),
    ];
  }

  #place(pack: Pack, value: unknown): [start: number | null, length: number | null] {
    if (value === null) return [null, null];
    const [type, wanted] = PACKED[pack.kind];
    if (!(value instanceof type)) {
      throw new QuarryError(
        "invalid_input",
        `queue ${this.#queue.name}: result column ${pack.name} takes ${wanted}`,
      );
    }
    const start = pack.length + 1;
    pack.length += value.length;
    pack.values.push(value);
    return [start, value.length];
  }

  #encode(result: Row): Json {
    const { dialect } = this.#database;
    const written: Row = {};
    let isSimple = true;
    for (const name of this.#written) {
      const value = result[name];
      written[name] = value;
      isSimple &&= typeof value !== "bigint" && (typeof value !== "object" || value === null);
    }
    // What JSON knows by itself is written without asking about every value.
    const toText = isSimple ? JSON.stringify : (value: unknown) => stringify(this.#database, value);
    const json = dialect.results(written, toText);
    return isStorable(json.text) ? json : dialect.results(cleanValue(written) as Row, toText);
  }
}
