import { existsSync, globSync } from "node:fs";
import { delimiter, join } from "node:path";

/** PostgreSQL's own client; Debian keeps it beside the server. */
export function findPsql(): string {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  const candidates = [
    ...folders.map((folder) => join(folder, "psql")),
    ...globSync("/usr/lib/postgresql/*/bin/psql"),
  ];
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined)
    throw new Error("psql was not found: install PostgreSQL's client (Debian: postgresql-client)");
  return found;
}
