import { constants, DatabaseSync } from "node:sqlite";
import { serveIsolate } from "../adapters/isolate.ts";
import { messageOf, QuarryError } from "../errors.ts";
import { BASE_TABLES, type Scope, VIEW_NAMES, viewsSql } from "./catalogue.ts";
import { FUNCTIONS } from "./sql-guard.ts";
import { cellOf, type Table } from "./sql-table.ts";

interface Setup {
  readonly path: string;
  readonly rowsMax: number;
}

interface Query {
  readonly sql: string;
  readonly scope: Scope;
}

const BUSY_MS = 2_000;

/** Reads one SQLite file for queries over the catalogue. Whatever a query does, it can only read, and only the views. */
serveIsolate(({ path, rowsMax }: Setup) => ({
  read: ({ sql, scope }: Query): Table => {
    const connection = connect(path);
    try {
      for (const view of viewsSql("sqlite", "main", scope)) connection.exec(view);
      connection.exec("pragma query_only = on");
      connection.setAuthorizer((action, name, column, schema, within) =>
        isAllowed({ action, name, column, schema, within }) ? constants.SQLITE_OK : constants.SQLITE_DENY,
      );
      return select(connection, sql, rowsMax);
    } catch (error) {
      throw new QuarryError("invalid_input", `the database refuses the query: ${messageOf(error)}`);
    } finally {
      connection.close();
    }
  },
}));

function connect(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  } catch (error) {
    throw new QuarryError("database_unavailable", `${path} cannot be read: ${messageOf(error)}`);
  }
}

function select(connection: DatabaseSync, sql: string, rowsMax: number): Table {
  const statement = connection.prepare(sql);
  statement.setReturnArrays(true);
  const columns = statement.columns().map(({ name }) => name);
  const rows: Table["rows"][number][] = [];
  for (const row of statement.iterate() as Iterable<unknown>) {
    if (rows.length === rowsMax) return { columns, rows, isCut: true };
    rows.push((row as unknown[]).map(cellOf));
  }
  return { columns, rows, isCut: false };
}

interface Asked {
  readonly action: number;
  readonly name: string | null;
  readonly column: string | null;
  readonly schema: string | null;
  /** The view that asks; of a query, a part that it named itself. */
  readonly within: string | null;
}

/** What operators call. */
const OPERATORS = new Set(["like", "glob"]);

function isAllowed({ action, name, column, schema, within }: Asked): boolean {
  switch (action) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
      return true;
    case constants.SQLITE_FUNCTION:
      // Its name stands where that of a column would.
      return FUNCTIONS.has(column ?? "") || OPERATORS.has(column ?? "");
    case constants.SQLITE_READ:
      if (schema === "temp") return VIEW_NAMES.has(name ?? "");
      // Counting rows reads no column, and is not said to come from a view.
      return BASE_TABLES.has(name ?? "") && (VIEW_NAMES.has(within ?? "") || column === "");
    default:
      return false;
  }
}
