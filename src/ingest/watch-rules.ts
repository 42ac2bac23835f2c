import { readFileSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type IgnoreRules, ignoreRules } from "./ignore.ts";
import { whySkipped } from "./scan.ts";

const GITIGNORE = ".gitignore";

/** Which paths below the watched ones are wanted: those that a scan would take. */
export class WantedPaths {
  readonly #roots: ReadonlySet<string>;
  readonly #except: ReadonlySet<string>;
  /** By folder; undefined for one that is left out itself. */
  readonly #rules = new Map<string, IgnoreRules | undefined>();
  readonly #gitignores = new Map<string, string | undefined>();

  constructor({ roots, except }: { roots: readonly string[]; except: readonly string[] }) {
    this.#roots = new Set(roots);
    this.#except = new Set(except.map(realOrSame));
  }

  isWanted(path: string, kind: "file" | "folder" | "other"): boolean {
    if (this.#roots.has(path)) return true;
    if (this.#except.has(path) || whySkipped(basename(path), kind) !== undefined) return false;
    const rules = this.#within(dirname(path));
    return rules !== undefined && rules.whyLeftOut(path, kind === "folder") === undefined;
  }

  /** Whether nothing needs to be heard of a path. Without `stats`, as far as its name alone tells. */
  isUnheard(path: string, stats: Stats | undefined): boolean {
    if (this.#roots.has(path)) return false;
    if (isGitignore(path)) return this.#within(dirname(path)) === undefined;
    if (!stats) return this.#except.has(path) || whySkipped(basename(path), "file") === "hidden";
    const kind = stats.isDirectory() ? "folder" : stats.isFile() ? "file" : "other";
    return !this.isWanted(path, kind);
  }

  /** Whether a .gitignore says something else than what is followed. */
  isOutdated(gitignore: string): boolean {
    const folder = dirname(gitignore);
    return this.#within(folder) !== undefined && this.#gitignores.get(folder) !== readText(gitignore);
  }

  #within(folder: string): IgnoreRules | undefined {
    if (!this.#rules.has(folder)) this.#rules.set(folder, this.#read(folder));
    return this.#rules.get(folder);
  }

  #read(folder: string): IgnoreRules | undefined {
    const outer = this.#roots.has(folder) ? ignoreRules({ root: folder }) : this.#outer(folder);
    if (outer === undefined) return undefined;
    const text = readText(join(folder, GITIGNORE));
    this.#gitignores.set(folder, text);
    return text === undefined ? outer : outer.with(folder, text);
  }

  #outer(folder: string): IgnoreRules | undefined {
    const isTop = dirname(folder) === folder;
    return !isTop && this.isWanted(folder, "folder") ? this.#within(dirname(folder)) : undefined;
  }
}

export function isGitignore(path: string): boolean {
  return basename(path) === GITIGNORE;
}

/** Read at once: whoever asks about a path cannot wait for the answer. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function realOrSame(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
