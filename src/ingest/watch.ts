import { realpath } from "node:fs/promises";
import { type FSWatcher, watch } from "chokidar";
import { type Clock, pause, systemClock } from "../clock.ts";
import { messageOf, QuarryError } from "../errors.ts";
import { type Log, silentLog } from "../log.ts";
import { whyNotOpened } from "./scan.ts";
import { WatchItems, type WatchItemsOptions } from "./watch-items.ts";
import { isGitignore, WantedPaths } from "./watch-rules.ts";
import { FolderState, isBelow, standingAt } from "./watch-state.ts";

export interface WatchOptions extends WatchItemsOptions {
  /** Files and folders. */
  readonly paths: readonly string[];
  /** Folders that are not entered, such as our own data folder. */
  readonly except?: readonly string[];
  /** A file is taken when nothing has happened to it for so long. */
  readonly stillMs?: number;
  /** Every change from now on is heard of. Also told when it had to begin anew. */
  readonly onReady?: (watched: { readonly files: number }) => void;
  /** Something that a person who looks on wants to know. */
  readonly onNotice?: (text: string) => void;
  readonly clock?: Clock;
}

interface Root {
  readonly path: string;
  readonly isFolder: boolean;
  /** Which folder it is: another one may come to stand in its place. */
  readonly stamp: string;
}

interface Touched {
  readonly firstAt: number;
  lastAt: number;
}

const STILL_MS = 300;
/** While something happens all the time, what is still is taken this often. */
const HOLD_MS = 3_000;
/** A file that is never still, such as a log, is taken this often. */
const RESTLESS_MS = 30_000;
const LOOK_EVERY_MS = 50;
const LOST_LOOK_EVERY_MS = 1_000;

/** Watches files and folders, and puts what happens to them into line, until the signal aborts. */
export async function watchPaths(options: WatchOptions): Promise<void> {
  const watching = new Watching(options, await realPaths(options.paths));
  try {
    await watching.run();
  } finally {
    await watching.close();
  }
}

/** What lies in another one is watched with it. */
async function realPaths(paths: readonly string[]): Promise<string[]> {
  const real = await Promise.all(
    paths.map((path) =>
      realpath(path).catch((error) => {
        throw new QuarryError("invalid_input", `${path}: ${whyNotOpened(error)}`, { cause: error });
      }),
    ),
  );
  return [...new Set(real)].filter((path) => !real.some((other) => other !== path && isBelow(other, path)));
}

class Watching {
  readonly #options: WatchOptions;
  readonly #paths: readonly string[];
  readonly #items: WatchItems;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #stillMs: number;
  readonly #touched = new Map<string, Touched>();
  #roots: readonly Root[] = [];
  #rules = new WantedPaths({ roots: [], except: [] });
  #state = new FolderState(() => false);
  #watcher: FSWatcher | undefined;
  #lastAt = 0;
  #isOutdated = false;
  #failure: QuarryError | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(options: WatchOptions, paths: readonly string[]) {
    this.#options = options;
    this.#paths = paths;
    this.#items = new WatchItems(options);
    this.#log = options.log ?? silentLog;
    this.#clock = options.clock ?? systemClock;
    this.#stillMs = options.stillMs ?? STILL_MS;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    await this.#begin();
    while (!signal.aborted) {
      if (this.#failure) throw this.#failure;
      if (await this.#isToBegin()) await this.#begin();
      else if (this.#isTime()) await this.#take();
      await this.#rest();
    }
  }

  async close(): Promise<void> {
    await this.#watcher?.close();
  }

  /** Listens first and looks then, so that nothing falls between. */
  async #begin(): Promise<void> {
    const { signal, except = [] } = this.#options;
    await this.#watcher?.close();
    this.#touched.clear();
    this.#isOutdated = false;
    this.#roots = await rootsAt(this.#paths);
    const roots = this.#roots.map(({ path }) => path);
    this.#rules = new WantedPaths({ roots, except });
    this.#state = new FolderState((path, kind) => this.#rules.isWanted(path, kind));
    if (roots.length === 0) return;
    const found = await this.#listen(roots);
    if (signal.aborted || this.#failure) return;
    await this.#state.begin(found);
    await this.#items.scan(this.#roots);
    this.#options.onReady?.({ files: this.#state.size });
  }

  /** Returns what is there, when all of it is listened to. */
  async #listen(roots: string[]): Promise<Set<string>> {
    const found = new Set<string>();
    let isReady = false;
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const rules = this.#rules;
    this.#watcher = watch(roots, {
      ignored: (path, stats) => rules.isUnheard(path, stats),
      followSymlinks: false,
      ignorePermissionErrors: true,
      // What belongs together is found out here, where moves are known too.
      atomic: false,
    })
      .on("all", (_event, path) => (isReady ? this.#touch(path) : found.add(path)))
      .on("error", (error) => {
        this.#log.warn({ error: messageOf(error) }, "watching");
        this.#failure ??= asFatal(error);
        if (this.#failure) resolve();
        this.#wake.resolve();
      })
      .on("ready", resolve);
    const { signal } = this.#options;
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (!signal.aborted) await ready;
    isReady = true;
    return found;
  }

  #touch(path: string): void {
    if (isGitignore(path)) {
      if (this.#rules.isOutdated(path)) this.#isOutdated = true;
      else return;
    }
    const now = this.#clock.monotonic();
    const before = this.#touched.get(path);
    if (before) before.lastAt = now;
    else this.#touched.set(path, { firstAt: now, lastAt: now });
    this.#lastAt = now;
    this.#wake.resolve();
  }

  /** When all is quiet: the two ends of a move come one after the other. */
  #isTime(): boolean {
    const now = this.#clock.monotonic();
    const [first] = this.#touched.values();
    return first !== undefined && (now - this.#lastAt >= this.#stillMs || now - first.firstAt >= HOLD_MS);
  }

  async #take(): Promise<void> {
    const now = this.#clock.monotonic();
    const due = [...this.#touched]
      .filter(([, { firstAt, lastAt }]) => now - lastAt >= this.#stillMs || now - firstAt >= RESTLESS_MS)
      .map(([path]) => path);
    for (const path of due) this.#touched.delete(path);
    const changes = await this.#state.changes(due, (paths) => this.#items.isSettled(paths));
    await this.#items.write(changes);
  }

  async #isToBegin(): Promise<boolean> {
    if (!this.#isTime() && this.#roots.length === this.#paths.length) return false;
    const roots = await rootsAt(this.#paths);
    const isSame = (one: Root) =>
      roots.some(({ path, stamp, isFolder }) => path === one.path && (!isFolder || stamp === one.stamp));
    for (const { path, isFolder } of this.#roots)
      if (isFolder && !roots.some((root) => root.path === path))
        this.#options.onNotice?.(`${path} is gone. What was found in it stays until it is back.`);
    const isKept = this.#roots.every((root) => !root.isFolder || isSame(root));
    return this.#isOutdated || !isKept || roots.length > this.#roots.length;
  }

  async #rest(): Promise<void> {
    const { signal } = this.#options;
    if (this.#touched.size > 0) return pause(LOOK_EVERY_MS, signal);
    const woken = new AbortController();
    this.#wake = Promise.withResolvers();
    void this.#wake.promise.then(() => woken.abort());
    await pause(LOST_LOOK_EVERY_MS, AbortSignal.any([signal, woken.signal]));
  }
}

async function rootsAt(paths: readonly string[]): Promise<Root[]> {
  const standings = await Promise.all(paths.map(standingAt));
  return paths.flatMap((path, position) => {
    const standing = standings[position]!;
    return "stamp" in standing ? [{ path, isFolder: standing.kind === "folder", stamp: standing.stamp }] : [];
  });
}

/** What cannot be watched any further; undefined for what only concerns a file or two. */
export function asFatal(cause: unknown): QuarryError | undefined {
  switch ((cause as NodeJS.ErrnoException).code) {
    case "ENOSPC":
      return new QuarryError(
        "resource_exhausted",
        "the system lets nobody watch more folders: watch fewer, leave some out with a .gitignore, or allow more with sysctl fs.inotify.max_user_watches=524288",
        { cause },
      );
    case "EMFILE":
    case "ENFILE":
      return new QuarryError(
        "resource_exhausted",
        "the system lets nobody open more files or watchers: end other programs that watch, or allow more with ulimit -n 65536 and sysctl fs.inotify.max_user_instances=1024",
        { cause },
      );
    default:
      return undefined;
  }
}
