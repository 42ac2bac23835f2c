import { lstat } from "node:fs/promises";
import { dirname, sep } from "node:path";

export type Change =
  | { readonly kind: "created" | "changed" | "gone"; readonly path: string }
  | { readonly kind: "moved"; readonly from: string; readonly to: string; readonly isFolder: boolean };

/**
 * What stands at a path. A file keeps its stamp when it is moved and gets another one when it is written; a folder
 * keeps its own whatever happens in it.
 */
export type Standing =
  | { readonly kind: "file" | "folder"; readonly stamp: string }
  /** "unknown": it cannot be told, so nothing is concluded. */
  | { readonly kind: "nothing" | "unknown" };

const LOOKS_AT_ONCE = 64;

/**
 * The files as they were when last looked at. What a watcher reports is only taken as a hint where to look again, so
 * that a file that is written, renamed over or removed and made anew ten times in a moment is one change.
 */
export class FolderState {
  readonly #files = new Map<string, string>();
  readonly #folders = new Map<string, string>();
  readonly #isWanted: (path: string, kind: "file" | "folder") => boolean;

  constructor(isWanted: (path: string, kind: "file" | "folder") => boolean) {
    this.#isWanted = isWanted;
  }

  get size(): number {
    return this.#files.size;
  }

  /** Takes what is there as seen before. */
  async begin(paths: Iterable<string>): Promise<void> {
    for (const [path, found] of await this.#look(paths)) this.#remember(path, found);
  }

  /** What became of these paths. `mayMove` is asked whether a move may be told as such, and not as two changes. */
  async changes(
    paths: Iterable<string>,
    mayMove: (paths: readonly string[]) => Promise<boolean>,
  ): Promise<Change[]> {
    const found = await this.#look(paths);
    const moves = await this.#movedFolders(found, mayMove);
    const gone: string[] = [];
    const created: string[] = [];
    const changed: string[] = [];
    for (const [path, standing] of found) {
      const before = this.#files.get(path);
      if (standing.kind === "unknown") continue;
      if (standing.kind !== "file") {
        if (before !== undefined) gone.push(path);
        else this.#remember(path, standing);
      } else if (before === undefined) created.push(path);
      else if (before !== standing.stamp) changed.push(path);
    }
    moves.push(...(await this.#movedFiles({ gone, created, found }, mayMove)));
    const isMoved = new Set(moves.flatMap(({ from, to }) => [from, to]));
    const rest = (kind: "gone" | "changed" | "created", among: string[]): Change[] =>
      among.filter((path) => !isMoved.has(path)).map((path) => ({ kind, path }));
    const changes = [
      ...moves,
      ...rest("gone", gone),
      ...rest("changed", changed),
      ...rest("created", created),
    ];
    for (const path of [...gone, ...changed, ...created]) this.#remember(path, found.get(path)!);
    return changes;
  }

  async #look(paths: Iterable<string>): Promise<Map<string, Standing>> {
    const all = [...paths];
    const found = new Map<string, Standing>();
    for (let start = 0; start < all.length; start += LOOKS_AT_ONCE) {
      const some = all.slice(start, start + LOOKS_AT_ONCE);
      const standings = await Promise.all(some.map((path) => this.#standingAt(path)));
      for (const [position, path] of some.entries()) found.set(path, standings[position]!);
    }
    return found;
  }

  async #standingAt(path: string): Promise<Standing> {
    const standing = await standingAt(path);
    const isThere = standing.kind === "file" || standing.kind === "folder";
    return isThere && !this.#isWanted(path, standing.kind) ? { kind: "nothing" } : standing;
  }

  #remember(path: string, standing: Standing): void {
    if (standing.kind === "unknown") return;
    this.#files.delete(path);
    this.#folders.delete(path);
    if (standing.kind === "file") this.#files.set(path, standing.stamp);
    if (standing.kind === "folder") this.#folders.set(path, standing.stamp);
  }

  /** Folders that stand elsewhere with every file they had, and nothing of it written since. */
  async #movedFolders(
    found: ReadonlyMap<string, Standing>,
    mayMove: (paths: readonly string[]) => Promise<boolean>,
  ): Promise<Extract<Change, { kind: "moved" }>[]> {
    const appeared = new Map<string, string>();
    for (const [path, standing] of found)
      if (standing.kind === "folder" && !this.#folders.has(path)) appeared.set(standing.stamp, path);
    const vanished = [...found.keys()].filter(
      (path) => this.#folders.has(path) && found.get(path)!.kind === "nothing",
    );
    const moves: Extract<Change, { kind: "moved" }>[] = [];
    // What is in a folder moves with it.
    for (const from of vanished.sort((one, other) => one.length - other.length)) {
      const to = appeared.get(this.#folders.get(from) ?? "");
      if (to === undefined) continue;
      const files = [...this.#files.keys()].filter((path) => isBelow(from, path));
      const targets = files.map((path) => to + path.slice(from.length));
      if (files.length === 0 || targets.some((path) => this.#files.has(path))) continue;
      const there = await this.#look(targets);
      const isSame = files.every((path, position) => {
        const standing = there.get(targets[position]!)!;
        return standing.kind === "file" && standing.stamp === this.#files.get(path);
      });
      if (!isSame || !(await mayMove([...files, ...targets]))) continue;
      for (const path of files) this.#files.delete(path);
      for (const [path, standing] of there) this.#remember(path, standing);
      for (const [path, stamp] of [...this.#folders])
        if (path === from || isBelow(from, path)) {
          this.#folders.delete(path);
          this.#folders.set(to + path.slice(from.length), stamp);
        }
      moves.push({ kind: "moved", from, to, isFolder: true });
    }
    return moves;
  }

  async #movedFiles(
    { gone, created, found }: { gone: string[]; created: string[]; found: ReadonlyMap<string, Standing> },
    mayMove: (paths: readonly string[]) => Promise<boolean>,
  ): Promise<Extract<Change, { kind: "moved" }>[]> {
    const sources = new Map(gone.map((path) => [this.#files.get(path)!, path]));
    const moves: Extract<Change, { kind: "moved" }>[] = [];
    for (const to of created) {
      const standing = found.get(to)!;
      const from = "stamp" in standing ? sources.get(standing.stamp) : undefined;
      if (from === undefined || !(await mayMove([from, to]))) continue;
      sources.delete(this.#files.get(from)!);
      moves.push({ kind: "moved", from, to, isFolder: false });
    }
    return moves;
  }
}

export async function standingAt(path: string): Promise<Standing> {
  try {
    const info = await lstat(path, { bigint: true });
    const id = `${info.dev}:${info.ino}`;
    if (info.isFile()) return { kind: "file", stamp: `${id}:${info.size}:${info.mtimeNs}` };
    return info.isDirectory() ? { kind: "folder", stamp: id } : { kind: "nothing" };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { kind: code === "ENOENT" || code === "ENOTDIR" ? "nothing" : "unknown" };
  }
}

export function isBelow(folder: string, path: string): boolean {
  return path.startsWith(dirname(folder) === folder ? folder : folder + sep);
}
