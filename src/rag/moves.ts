import { createHash } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { messageOf } from "../errors.ts";
import { RagError } from "./errors.ts";
import { freeName } from "./filenames.ts";
import { isSameFile } from "./folders.ts";

/**
 * A file on its way from one folder to another, as it is written down before every step. Whoever finds it unfinished
 * goes on from there: however often a step is repeated, the file ends in one place, unchanged.
 *
 *   intended → the file stands under its new name, on the disk → placed → the old name is gone → moved
 *
 * "reserved", before "placed": an empty file holds the new name, where there are no hard links.
 */
export interface Move {
  readonly from: string;
  readonly to: string;
  readonly state: MoveState;
  /** What the file was when the move was decided: a newer file under the old name is left alone. */
  readonly file: string;
}

export const MOVE_STATES = ["intended", "reserved", "placed", "moved"] as const;
export type MoveState = (typeof MOVE_STATES)[number];

export interface MoveParts {
  /** Tells the moves of two jobs apart. */
  readonly jobId: string;
  /** Writes the move down; it is on the disk when this returns. */
  note(move: Move): Promise<void>;
  /** Called between steps, so that tests can stop there. */
  step?(name: MoveStep): void | Promise<void>;
}

export const MOVE_STEPS = [
  ...["intended", "link", "linked", "renamed", "copying", "copied", "naming", "named", "reserved"],
  ...["placed", "aside", "moved"],
] as const;
export type MoveStep = (typeof MOVE_STEPS)[number];

/** Hard links are not known to every file system, and lead to no other. */
const NO_LINK = new Set(["EXDEV", "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);
const NAMES_TRIED_MAX = 100;

/** Decides where a file goes and takes it there. Nothing is overwritten: a name that is taken gets a suffix. */
export async function moveFile(
  parts: MoveParts,
  source: { readonly path: string; readonly stats: BigIntStats },
  target: { readonly folder: string; readonly filename: string },
): Promise<Move> {
  const to = join(target.folder, await freeName(target.folder, target.filename));
  const move: Move = { from: source.path, to, state: "intended", file: fileOf(source.stats) };
  await parts.note(move);
  await parts.step?.("intended");
  return finishMove(parts, move);
}

export async function finishMove(parts: MoveParts, begun: Move): Promise<Move> {
  try {
    let move = begun;
    if (move.state === "intended" || move.state === "reserved") {
      move = { ...(await place(parts, move)), state: "placed" };
      await parts.note(move);
      await parts.step?.("placed");
    }
    if (move.state === "placed") {
      await takeAway(parts, move);
      move = { ...move, state: "moved" };
      await parts.note(move);
      await parts.step?.("moved");
    }
    return move;
  } catch (error) {
    if (error instanceof RagError || !isSystemError(error)) throw error;
    throw new RagError("ERR_MOVE_FAILED", `${begun.from} cannot be moved: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** ino, size and time of the last change: together they are one state of one file. */
export function fileOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino}:${size}:${mtimeNs}`;
}

async function place(parts: MoveParts, begun: Move): Promise<Move> {
  let move = begun;
  if (begun.state === "reserved") {
    await rename(temporaryName(parts, begun), begun.to).catch(ifMissing);
    await syncFolder(dirname(begun.to));
    if (await isWhole(begun)) return begun;
    await rm(begun.to, { force: true });
    move = { ...begun, state: "intended" };
    await parts.note(move);
  }
  for (let tried = 0; tried < NAMES_TRIED_MAX; tried++) {
    if (await putUnder(parts, move)) {
      await syncFolder(dirname(move.to));
      return move;
    }
    // Somebody else has that name by now.
    const folder = dirname(move.to);
    await rm(temporaryName(parts, move), { force: true });
    move = { ...move, to: join(folder, await freeName(folder, basename(begun.to))) };
    await parts.note(move);
    await parts.step?.("renamed");
  }
  throw new RagError(
    "ERR_MOVE_FAILED",
    `${dirname(begun.to)}: all names like ${basename(begun.to)} are taken`,
  );
}

/** True when the file stands under its new name; false when that is another file's. */
async function putUnder(parts: MoveParts, move: Move): Promise<boolean> {
  const source = await statOf(move.from);
  const target = await statOf(move.to);
  if (target) return fileOf(target) === move.file || isOwnCopy(parts, move, target);
  if (!source || fileOf(source) !== move.file) throw gone(move);
  try {
    await parts.step?.("link");
    await link(move.from, move.to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return isAt(move.to, source);
    if (NO_LINK.has(code ?? "")) return copyUnder(parts, move);
    throw error;
  }
  await parts.step?.("linked");
  if (await isAt(move.to, source)) return true;
  // The path led to another file at that moment.
  await rm(move.to, { force: true });
  throw gone(move);
}

/**
 * A copy under its temporary name is kept until the move is noted as placed, so that it tells whose the new name is.
 * One that is not whole was begun by a worker that died, or lost the job and still writes: it is made again.
 */
async function isOwnCopy(parts: MoveParts, move: Move, target: BigIntStats): Promise<boolean> {
  if (!(await isAt(temporaryName(parts, move), target))) return false;
  if (await isWhole(move)) return true;
  await rm(move.to, { force: true });
  return copyUnder(parts, move);
}

/** What stands under the new name is what stands under the old one. */
async function isWhole({ from, to, file }: Move): Promise<boolean> {
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);
  const source = await open(from, flags).catch(ifMissing);
  // Taken away by somebody else: there is nothing to compare with, and nothing else left of it.
  if (!source) return true;
  try {
    if (fileOf(await source.stat({ bigint: true })) !== file) return true;
    const target = await open(to, flags).catch(ifMissing);
    if (!target) return false;
    try {
      return (await hashOf(target)) === (await hashOf(source));
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** To another file system: copied, on the disk, read again and compared before it gets its name. */
async function copyUnder(parts: MoveParts, move: Move): Promise<boolean> {
  const temporary = temporaryName(parts, move);
  await rm(temporary, { force: true });
  const source = await open(move.from, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const stats = await source.stat({ bigint: true });
    if (fileOf(stats) !== move.file) throw gone(move);
    const copy = await open(temporary, "wx+", Number(stats.mode) & 0o777);
    try {
      await parts.step?.("copying");
      const copied = await hashOf(source, (bytes) => copy.appendFile(bytes));
      await copy.utimes(Number(stats.atimeMs) / 1000, Number(stats.mtimeMs) / 1000);
      await copy.sync();
      await parts.step?.("copied");
      const written = await copy.stat({ bigint: true });
      if (written.size !== stats.size || (await hashOf(copy)) !== copied)
        throw new RagError("ERR_MOVE_FAILED", `${move.from} was changed while it was copied to ${move.to}`);
      return await nameCopy(parts, move, { temporary, written });
    } finally {
      await copy.close();
    }
  } finally {
    await source.close();
  }
}

/** The copy stays open until it has its name, so that nothing else can be taken for it. */
async function nameCopy(
  parts: MoveParts,
  move: Move,
  { temporary, written }: { temporary: string; written: BigIntStats },
): Promise<boolean> {
  try {
    await parts.step?.("naming");
    await link(temporary, move.to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return isAt(move.to, written);
    if (NO_LINK.has(code ?? "")) return reserveAndRename(parts, move, { temporary, written });
    throw error;
  }
  await parts.step?.("named");
  if (await isAt(move.to, written)) return true;
  throw changed(move);
}

async function reserveAndRename(
  parts: MoveParts,
  move: Move,
  { temporary, written }: { temporary: string; written: BigIntStats },
): Promise<boolean> {
  const reserved = await open(move.to, "wx").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") return undefined;
    throw error;
  });
  if (!reserved) return false;
  await reserved.close();
  await parts.note({ ...move, state: "reserved" }).catch(async (error) => {
    await rm(move.to, { force: true });
    throw error;
  });
  await parts.step?.("reserved");
  await rename(temporary, move.to);
  // A worker that lost the job may have begun a copy of its own under the temporary name.
  if (await isAt(move.to, written)) return true;
  throw changed(move);
}

/**
 * Removes the old name. It is taken out of everybody's reach first and looked at then: a new file that came under
 * that name meanwhile is put back.
 */
async function takeAway(parts: MoveParts, move: Move): Promise<void> {
  await rm(temporaryName(parts, move), { force: true });
  const folder = dirname(move.from);
  const aside = join(folder, `.${shortHash(parts.jobId)}.moved`);
  const isUnchanged = (stats: BigIntStats | undefined) => stats !== undefined && fileOf(stats) === move.file;
  // Unless a crash left it aside already.
  if (!(await statOf(aside)) && isUnchanged(await statOf(move.from))) {
    await rename(move.from, aside).catch(ifMissing);
    await parts.step?.("aside");
  }
  const taken = await statOf(aside);
  if (isUnchanged(taken)) await unlink(aside).catch(ifMissing);
  else if (taken) await putBack(aside, move.from);
  await syncFolder(folder).catch(ifMissing);
}

async function putBack(aside: string, path: string): Promise<void> {
  for (let name = basename(path); ; name = await freeName(dirname(path), basename(path))) {
    try {
      await link(aside, join(dirname(path), name));
      return await unlink(aside);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function temporaryName({ jobId }: MoveParts, { to }: Move): string {
  return join(dirname(to), `.${shortHash(`${jobId} ${basename(to)}`)}.part`);
}

export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function changed({ to }: Move): RagError {
  return new RagError("ERR_MOVE_FAILED", `${to} was changed by somebody else while it was written`);
}

function gone({ from }: Move): RagError {
  return new RagError("ERR_FILE_NOT_FOUND", `${from} was removed or replaced while it was worked on`);
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    ifMissing(error);
    return undefined;
  }
}

async function isAt(path: string, file: BigIntStats): Promise<boolean> {
  const there = await statOf(path);
  return there !== undefined && isSameFile(there, file);
}

function ifMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

function isSystemError(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).syscall === "string";
}

async function hashOf(file: FileHandle, take?: (bytes: Buffer) => Promise<unknown>): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of file.createReadStream({ start: 0, autoClose: false })) {
    hash.update(bytes);
    await take?.(bytes);
  }
  return hash.digest("hex");
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  await folder.sync().finally(() => folder.close());
}

/** How a move is noted with its job. */
export function toReport({ from, to, state, file }: Move): MoveNote {
  const noted = state === "moved" ? state : `${state} ${file}`;
  return { moved_from: from || null, moved_to: to || null, move_state: noted };
}

export function fromStatus(status: MoveNote): Move | undefined {
  const { moved_from: from, moved_to: to, move_state: noted } = status;
  const [word, file = ""] = (noted ?? "").split(" ");
  const state = MOVE_STATES.find((known) => known === word);
  return state && to !== null ? { from: from ?? "", to, state, file } : undefined;
}

/** The file that a job has taken in: what lies in its place by then may be another one, for another job. */
export interface TakenFile {
  readonly path: string;
  readonly file: string;
}

export function toTaken({ path, file }: TakenFile): Pick<MoveNote, "moved_from" | "move_state"> {
  return { moved_from: path, move_state: `${TAKEN} ${file}` };
}

export function takenBy({ moved_from: path, move_state: noted }: MoveNote): TakenFile | undefined {
  const [word, file] = (noted ?? "").split(" ");
  return word === TAKEN && path !== null && file !== undefined ? { path, file } : undefined;
}

const TAKEN = "taken";

interface MoveNote {
  readonly moved_from: string | null;
  readonly moved_to: string | null;
  readonly move_state: string | null;
}
