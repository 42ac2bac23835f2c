import type { Database, Session, Statement } from "../../src/database/database.ts";

export interface Hold {
  /** Resolves when a statement of that name has come to the point. */
  readonly reached: Promise<void>;
  release(): void;
}

/**
 * Every fixed statement has a name, so every place between two statements is a named point: a test can hold one
 * session there while it lets another run, and so force a race instead of hoping for it.
 */
export class Points {
  /** How often each statement ran. */
  readonly counts = new Map<string, number>();
  readonly #failures: { point: string; error: Error }[] = [];
  readonly #holds: { point: string; arrive: () => void; gate: Promise<void> }[] = [];

  /** Holds the next statement that comes to `before name` or `after name`. */
  hold(point: `before ${string}` | `after ${string}`): Hold {
    const arrival = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.#holds.push({ point, arrive: arrival.resolve, gate: gate.promise });
    return { reached: arrival.promise, release: gate.resolve };
  }

  /** Makes the next statement that comes to the point throw, as if the answer had been lost or never asked for. */
  fail(point: `before ${string}` | `after ${string}`, error: Error): void {
    this.#failures.push({ point, error });
  }

  async pass(point: string): Promise<void> {
    const failure = this.#failures.findIndex((planned) => planned.point === point);
    if (failure >= 0) throw this.#failures.splice(failure, 1)[0]!.error;
    const index = this.#holds.findIndex((hold) => hold.point === point);
    if (index < 0) return;
    const [hold] = this.#holds.splice(index, 1);
    hold!.arrive();
    await hold!.gate;
  }
}

/** The same database, with points around its statements. */
export function withPoints(database: Database): { database: Database; points: Points } {
  const points = new Points();
  const watched = <S extends Session>(session: S) => ({
    query: async (statement: Statement | string, params?: readonly unknown[]) => {
      const name = typeof statement === "string" ? statement : statement.name;
      points.counts.set(name, (points.counts.get(name) ?? 0) + 1);
      await points.pass(`before ${name}`);
      const rows = await session.query(statement, params);
      await points.pass(`after ${name}`);
      return rows;
    },
  });
  const wrapped: Database = {
    dialect: database.dialect,
    now: database.now,
    clock: database.clock,
    query: watched(database).query as Database["query"],
    transaction: async (work) => {
      await points.pass("before transaction");
      return database.transaction((transaction) =>
        work({
          query: watched(transaction).query as Session["query"],
          afterCommit: (next) => transaction.afterCommit(next),
        }),
      );
    },
    notify: (topic, options) => database.notify(topic, options),
    notice: (topic) => database.notice(topic),
    subscribe: (topic, listener) => database.subscribe(topic, listener),
    close: () => database.close(),
  };
  return { database: wrapped, points };
}
