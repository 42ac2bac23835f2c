import { lstat, opendir, realpath } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { messageOf } from "../errors.ts";
import { isMountAway, orAway } from "../mounts.ts";
import { type IgnoreRules, ignoreRules } from "./ignore.ts";

export type Found =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "skipped" | "refused"; readonly path: string; readonly why: string };

export interface ScanOptions {
  /** Folders that are not entered, such as our own data folder. */
  readonly except: readonly string[];
  /** How many folders deep; all of them unless said. */
  readonly depthMax?: number;
  /** Only files that match one of these patterns, in the manner of .gitignore files. */
  readonly patterns?: readonly string[] | undefined;
  readonly ignored?: readonly string[] | undefined;
}

/** What builds and tools leave behind; nobody wants to find it. */
const FOLDERS_SKIPPED = new Set([
  "node_modules",
  "__pycache__",
  "dist",
  "build",
  "target",
  "coverage",
  "vendor",
]);
/** No text in them. A file that is named on the command line itself is tried all the same. */
const EXTENSIONS_SKIPPED = new Set(
  ".7z .a .aac .avi .bin .bz2 .class .db .deb .dll .dmg .dylib .exe .flac .gz .ico .iso .jar .lock .m4a .map .mkv .mov .mp3 .mp4 .o .obj .ogg .otf .pack .pyc .rar .rpm .so .sqlite .tar .tgz .ttf .wasm .wav .webm .woff .woff2 .xz .zip .zst".split(
    " ",
  ),
);

/** The files below some paths, in a stable order. Links inside folders are not followed: they may lead anywhere. */
export async function* scan(paths: readonly string[], options: ScanOptions): AsyncGenerator<Found> {
  const except = new Set(await Promise.all(options.except.map(realOrSame)));
  for (const path of paths) {
    try {
      const full = await realpath(path);
      const info = await lstat(full);
      if (info.isFile()) yield { kind: "file", path: full };
      else if (info.isDirectory()) {
        const rules = ignoreRules({ root: full, patterns: options.patterns, ignored: options.ignored });
        yield* scanFolder(full, { except, rules, depth: options.depthMax ?? Number.POSITIVE_INFINITY });
      } else yield { kind: "refused", path, why: "it is neither a file nor a folder" };
    } catch (error) {
      if (isMountAway(error)) throw orAway(error, path);
      yield { kind: "refused", path, why: whyNotOpened(error) };
    }
  }
}

export function whyNotOpened(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return "no such file or folder";
  if (code === "EACCES" || code === "EPERM") return "it may not be read: its permissions do not allow it";
  return `it cannot be opened: ${messageOf(error)}`;
}

interface Walk {
  readonly except: ReadonlySet<string>;
  readonly rules: IgnoreRules;
  /** How many folders deeper it may go. */
  readonly depth: number;
}

async function* scanFolder(folder: string, walk: Walk): AsyncGenerator<Found> {
  const entries: { name: string; kind: "file" | "folder" | "other" }[] = [];
  try {
    for await (const entry of await opendir(folder)) {
      const kind = entry.isFile() ? "file" : entry.isDirectory() ? "folder" : "other";
      entries.push({ name: entry.name, kind });
    }
  } catch (error) {
    if (isMountAway(error)) throw orAway(error, folder);
    yield { kind: "skipped", path: folder, why: whyNotOpened(error) };
    return;
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const rules = await walk.rules.within(folder);
  for (const { name, kind } of entries) {
    const path = join(folder, name);
    // Our own folder is nobody's business.
    if (walk.except.has(path)) continue;
    const why = whySkipped(name, kind) ?? rules.whyLeftOut(path, kind === "folder");
    if (why !== undefined) yield { kind: "skipped", path, why };
    else if (kind === "folder" && walk.depth > 0)
      yield* scanFolder(path, { ...walk, rules, depth: walk.depth - 1 });
    else if (kind === "folder") yield { kind: "skipped", path, why: "too deep" };
    else yield { kind: "file", path };
  }
}

/** What a name alone tells. */
export function whySkipped(name: string, kind: "file" | "folder" | "other"): string | undefined {
  if (kind === "other") return "a link or a device";
  if (name.startsWith(".")) return "hidden";
  if (kind === "folder") return FOLDERS_SKIPPED.has(name) ? "made by tools" : undefined;
  const extension = extname(name).toLowerCase();
  return EXTENSIONS_SKIPPED.has(extension) ? `${extension} files are no documents` : undefined;
}

/**
 * The path under which scans and watchers know a folder: links on the way to it are followed. Of a folder that is gone,
 * as far as the way is still there.
 */
export async function realFolder(path: string): Promise<string> {
  return realpath(path).catch((error) => {
    if (isMountAway(error)) throw orAway(error, path);
    return dirname(path) === path ? path : realPath(path);
  });
}

/** The same for a file, which may itself be a link. */
export async function realPath(path: string): Promise<string> {
  return join(await realFolder(dirname(path)), basename(path));
}

function realOrSame(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}
