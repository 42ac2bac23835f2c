import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pause } from "../clock.ts";
import { isQuarryError, messageOf } from "../errors.ts";
import { type Log, silentLog } from "../log.ts";
import type { EnqueuedItem, Items, NewItem } from "./items.ts";
import { PRIORITIES } from "./queue.ts";
import type { Change } from "./watch-state.ts";

/** An item that a change became. */
export interface WatchedItem extends EnqueuedItem {
  readonly item_type: "file" | "folder" | "rename";
  readonly op: "ingest" | "update" | "delete" | "scan";
  readonly priority: number;
  readonly path: string;
  /** Of what was moved: where it was, and whether it is a folder. */
  readonly old_path?: string;
  readonly is_folder?: boolean;
}

export interface WatchItemsOptions {
  readonly items: Pick<Items, "enqueueMany" | "list" | "read">;
  readonly tenant?: string | undefined;
  readonly collection?: string | undefined;
  /** This machine's name, where there are several. */
  readonly machine?: string | undefined;
  /** Of what changes; 7 in a project and 5 elsewhere, unless said. */
  readonly priority?: number | undefined;
  readonly signal: AbortSignal;
  readonly log?: Log | undefined;
  readonly onItem?: ((item: WatchedItem) => void) | undefined;
}

type Draft = Omit<WatchedItem, keyof EnqueuedItem>;

const ITEMS_PER_WRITE = 500;
/** Not the items' fault: they are written when it is over. */
const OUTAGES = ["database_unavailable", "commit_unknown", "disk_full"] as const;
const OUTAGE_PAUSE_MS = 1_000;

/** Turns changes into items. */
export class WatchItems {
  readonly #options: WatchItemsOptions;
  readonly #log: Log;
  /** The last item of a file, until it is known to be done. */
  readonly #open = new Map<string, string>();
  readonly #openRenames = new Set<string>();
  readonly #openScans = new Set<string>();

  constructor(options: WatchItemsOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
  }

  /** Finds what changed while nobody watched. */
  async scan(roots: readonly { path: string; isFolder: boolean }[]): Promise<void> {
    const { scan: priority } = PRIORITIES;
    await this.#write(
      roots.map(({ path, isFolder }) =>
        isFolder
          ? { item_type: "folder", op: "scan", priority, path }
          : { item_type: "file", op: "ingest", priority, path },
      ),
    );
  }

  async write(changes: readonly Change[]): Promise<void> {
    const priorityOf = this.#priorities();
    const drafts: Draft[] = [];
    for (const change of changes) drafts.push(await draftOf(change, priorityOf));
    await this.#write(drafts);
  }

  /**
   * A rename finds documents only once they were made, and items of one path may run beside those of another: while
   * anything is left to do there, a move is a deletion and a new file.
   */
  async isSettled(paths: readonly string[]): Promise<boolean> {
    for (const id of this.#openScans) {
      if (!(await this.#isScanSettled(id))) return false;
    }
    for (const id of this.#openRenames) {
      if (!(await this.#isDone(id))) return false;
      this.#openRenames.delete(id);
    }
    for (const path of paths) {
      const id = this.#open.get(path);
      if (id === undefined) continue;
      if (!(await this.#isDone(id))) return false;
      this.#open.delete(path);
    }
    return true;
  }

  /** One that has not begun will find things as they are then; what another has found may be gone by now. */
  async #isScanSettled(id: string): Promise<boolean> {
    const { items } = this.#options;
    const scan = await items.read(id).catch(() => undefined);
    if (scan?.status === "pending") return true;
    if (scan?.status === "in_progress") return false;
    for (const status of ["pending", "in_progress"] as const)
      if ((await items.list({ parent_id: id, status, limit: 1 })).items.length > 0) return false;
    this.#openScans.delete(id);
    return true;
  }

  async #isDone(id: string): Promise<boolean> {
    try {
      return (await this.#options.items.read(id)).status === "done";
    } catch (error) {
      // Finished long ago and cleared away.
      return isQuarryError(error, "not_found");
    }
  }

  async #write(drafts: readonly Draft[]): Promise<void> {
    for (let start = 0; start < drafts.length; start += ITEMS_PER_WRITE)
      await this.#writeSome(drafts.slice(start, start + ITEMS_PER_WRITE));
  }

  /** The same again after an outage does no harm: items have keys. */
  async #writeSome(drafts: readonly Draft[]): Promise<void> {
    const { items, signal, onItem } = this.#options;
    while (!signal.aborted) {
      try {
        const written = await items.enqueueMany(drafts.map((draft) => this.#itemOf(draft)));
        for (const [position, draft] of drafts.entries()) {
          const enqueued = written[position]!;
          this.#remember(draft, enqueued.queue_id);
          onItem?.({ ...enqueued, ...draft });
        }
        return;
      } catch (error) {
        if (isQuarryError(error, ...OUTAGES)) {
          this.#log.warn({ error: messageOf(error) }, "changes wait for the database");
          await pause(OUTAGE_PAUSE_MS, signal);
        } else if (drafts.length > 1) {
          // One that cannot be taken, for its name perhaps, does not keep the others out.
          for (const draft of drafts) await this.#writeSome([draft]);
          return;
        } else {
          this.#log.warn({ path: drafts[0]!.path, error: messageOf(error) }, "a change was not taken");
          return;
        }
      }
    }
  }

  #remember({ item_type: type, path }: Draft, id: string): void {
    if (type === "file") this.#open.set(path, id);
    if (type === "rename") this.#openRenames.add(id);
    if (type === "folder") this.#openScans.add(id);
  }

  #itemOf({ item_type, op, priority, path, old_path, is_folder }: Draft): NewItem {
    const { tenant, collection, machine: seen_on } = this.#options;
    const payload = {
      file: { file_path: path, seen_on },
      folder: { folder_path: path, seen_on },
      rename: { old_path, new_path: path, is_folder, seen_on },
    }[item_type];
    return { item_type, op, payload, priority, tenant_id: tenant, collection };
  }

  /** Asked once for a folder: many files changed in few folders. */
  #priorities(): (path: string) => Promise<number> {
    const given = this.#options.priority;
    const known = new Map<string, Promise<boolean>>();
    const isProject = (folder: string): Promise<boolean> => {
      const asked = known.get(folder) ?? isInProject(folder, isProject);
      known.set(folder, asked);
      return asked;
    };
    return async (path) =>
      given ?? ((await isProject(dirname(path))) ? PRIORITIES.activeProject : PRIORITIES.normal);
  }
}

async function draftOf(change: Change, priorityOf: (path: string) => Promise<number>): Promise<Draft> {
  switch (change.kind) {
    case "created":
      return { item_type: "file", op: "ingest", path: change.path, priority: await priorityOf(change.path) };
    case "changed":
      return { item_type: "file", op: "update", path: change.path, priority: await priorityOf(change.path) };
    case "gone":
      return { item_type: "file", op: "delete", path: change.path, priority: await priorityOf(change.path) };
    case "moved":
      return {
        item_type: "rename",
        op: "update",
        path: change.to,
        old_path: change.from,
        is_folder: change.isFolder,
        priority: await priorityOf(change.to),
      };
    default:
      return change satisfies never;
  }
}

/** A folder with .git in it, or one below such a folder. */
async function isInProject(
  folder: string,
  isProject: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  const isOne = await stat(join(folder, ".git")).then(
    () => true,
    () => false,
  );
  return isOne || (dirname(folder) !== folder && (await isProject(dirname(folder))));
}
