import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Grafeo, as far as it is used: an embedded database that executes Cypher, in transactions. */
export interface CypherEngine {
  executeCypher(statement: string, params: object): Promise<CypherResult>;
  beginTransaction(isolation?: string): CypherTransaction;
  close(): void;
}

export interface CypherTransaction {
  executeCypher(statement: string, params: object): Promise<CypherResult>;
  commit(): void;
  rollback(): void;
}

export interface CypherResult {
  readonly columns: readonly string[];
  toArray(): Record<string, unknown>[];
}

interface Linter {
  lintCypherQuery(
    statement: string,
    schema: object,
  ): { diagnostics: readonly { severity: number; message: string }[] };
}

const FOLDER = join(import.meta.dirname, "../servers/cypher");
const LANGUAGE = join(
  FOLDER,
  "node_modules/@neo4j-cypher/language-support/dist/esm/project/language-support/src/index.js",
);

export function openCypherEngine(): CypherEngine {
  install();
  const { GrafeoDB } = createRequire(join(FOLDER, "package.json"))("@grafeo-db/js") as {
    GrafeoDB: { create(): CypherEngine };
  };
  return GrafeoDB.create();
}

/** What the grammar and the semantic analysis of Neo4j itself say against a statement. */
export async function neo4jProblems(statement: string, params: object): Promise<string[]> {
  install();
  const { lintCypherQuery } = (await import(pathToFileURL(LANGUAGE).href)) as Linter;
  return lintCypherQuery(statement, { parameters: params }).diagnostics.map(({ message }) => message);
}

/** Elsewhere, and then moved here as a whole: several test files may find at once that it is missing. */
function install(): void {
  if (existsSync(LANGUAGE)) return;
  process.stderr.write("A Cypher engine was not found: installing it under test/servers/cypher\n");
  const folder = mkdtempSync(join(FOLDER, "node_modules-"));
  try {
    for (const file of ["package.json", ".npmrc"]) copyFileSync(join(FOLDER, file), join(folder, file));
    // Not `ci`: a lock file lists the builds of all platforms, and not every mirror has them all.
    const args = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
    spawnSync("npm", args, { stdio: ["ignore", 2, 2] });
    if (!existsSync(LANGUAGE)) renameSync(join(folder, "node_modules"), join(FOLDER, "node_modules"));
  } catch (error) {
    if (!existsSync(LANGUAGE))
      throw new Error("the Cypher engine could not be installed: see test/servers/cypher", { cause: error });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
