import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";

/** Lanes that rest, in every process that runs them. A row in `paused_lanes` is all there is to it. */
export class Pauses {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(): Promise<Set<string>> {
    const rows = await this.#database.query({ name: "lanes.paused", sql: "select lane from paused_lanes" });
    return new Set(rows.map((row) => String(row.lane)));
  }

  async pause(lane: string): Promise<void> {
    const sql = `insert into paused_lanes (lane) values (${this.#mark}) on conflict (lane) do nothing`;
    await this.#database.query({ name: "lanes.pause", sql }, [lane]);
    this.#database.notify(PAUSE_TOPIC);
  }

  async resume(lane: string): Promise<void> {
    const sql = `delete from paused_lanes where lane = ${this.#mark}`;
    await this.#database.query({ name: "lanes.resume", sql }, [lane]);
    this.#database.notify(PAUSE_TOPIC);
  }

  get #mark(): string {
    return this.#database.dialect.mark(1);
  }
}

export const PAUSE_TOPIC = "lanes";

export function checkedLane(name: string, known: readonly string[]): string {
  if (known.includes(name)) return name;
  throw new QuarryError(
    "invalid_input",
    `there is no lane ${JSON.stringify(name)}; there are ${known.join(", ")}`,
  );
}
