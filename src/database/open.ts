import type { Clock } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import type { Database } from "./database.ts";
import { openPostgres } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";

export interface DatabaseSettings {
  /** Only SQLite: how commits reach the disk. */
  readonly synchronous?: "full" | "normal";
  /** Only PostgreSQL: how many connections may be open at once. */
  readonly poolMax?: number;
  /** Only SQLite; PostgreSQL uses the server's own clock. */
  readonly clock?: Clock;
  /** Connection problems that were dealt with and are only worth a log line. */
  readonly onError?: (error: unknown) => void;
}

/** Opens `postgres://…`, or a SQLite file (a path, `sqlite:path` or `:memory:`). */
export function openDatabase(url: string, settings: DatabaseSettings = {}): Database {
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres({ url, ...settings });
  const path = url.replace(/^(sqlite|file):(\/\/)?/, "");
  if (path === "" || /^[a-z][a-z0-9+]+:\/\//i.test(path)) {
    throw new QuarryError(
      "invalid_input",
      `cannot open ${JSON.stringify(url.replace(/\/\/.*@/, "//…@"))} as a database: give postgres://… or the path of a SQLite file`,
    );
  }
  return openSqlite({ path, ...settings });
}
