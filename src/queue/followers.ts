import type { Database, Row, Session, Statement, Transaction } from "../database/database.ts";
import type { Queue } from "./declaration.ts";
import { compileRollUp, type Key, type RollUp } from "./roll-up.ts";
import { PARENT, TURN } from "./statements.ts";
import { compileTurns, type Turns } from "./turns.ts";

/** What has to follow when rows were written: their parents in the same transaction, their groups' turns after it. */
export class Followers {
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #rollUp: RollUp | undefined;
  readonly #turns: Turns | undefined;

  constructor(database: Database, queue: Queue) {
    this.#database = database;
    this.#queue = queue;
    this.#rollUp = compileRollUp(queue, database.dialect, database.now);
    this.#turns = compileTurns(queue, database.dialect);
  }

  /** Without parents one statement is enough: it is a transaction by itself. */
  get needTransaction(): boolean {
    return this.#rollUp !== undefined;
  }

  /** Runs a statement that moves rows, and what follows from it. */
  async write(statement: Statement, params: readonly unknown[]): Promise<Row[]> {
    if (this.needTransaction) {
      return this.#database.transaction(async (transaction) => {
        const rows = await transaction.query(statement, params);
        await this.follow(transaction, rows);
        return rows;
      });
    }
    const rows = await this.#database.query(statement, params);
    await this.passTurns(rows);
    return rows;
  }

  async follow(transaction: Transaction, rows: readonly Row[]): Promise<void> {
    await this.moveParents(transaction, rows);
    if (this.#turns && rows.length > 0) transaction.afterCommit(() => this.passTurns(rows));
  }

  async moveParents(session: Session, rows: readonly Row[]): Promise<void> {
    if (!this.#rollUp) return;
    const parents = rows.map((row) => row[PARENT]);
    await this.#rollUp.follow(session, parents);
  }

  /** What was written stands, whatever happens here; the janitor passes a turn that was not passed. */
  async passTurns(rows: readonly Row[]): Promise<void> {
    // Those that have begun with the turn leave none to be passed.
    const others = rows.filter((row) => !row[TURN]);
    if (!this.#turns || others.length === 0) return;
    this.#tell(await this.#turns.pass(this.#database, others).catch(() => 0));
  }

  /** The same for rows of which only the keys are known. One that is deleted meanwhile leaves its group to the janitor. */
  async passTurnsOf(keys: readonly Key[]): Promise<void> {
    if (this.#turns) this.#tell(await this.#turns.passOf(this.#database, keys).catch(() => 0));
  }

  /** Re-derives the next parents and passes stranded turns. Returns how many were wrong. */
  async repair(limit: number): Promise<number> {
    const parents = (await this.#rollUp?.repair(this.#database, limit)) ?? 0;
    const turns = (await this.#turns?.sweep(this.#database)) ?? 0;
    this.#tell(turns);
    return parents + turns;
  }

  #tell(turnsGiven: number): void {
    if (turnsGiven > 0) this.#database.notify(this.#queue.name);
  }
}
