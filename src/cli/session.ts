import { existsSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import { loadSettings, type Settings } from "../config.ts";
import { QuarryError } from "../errors.ts";
import { createOutput, type Output } from "./output.ts";

export interface CommonOptions {
  readonly json: boolean;
  readonly data?: string;
}

/** Options that every command has. */
export function withCommonOptions(command: Command): Command {
  return command
    .option("--json", "print the result as JSON", false)
    .option("--data <folder>", "the data folder (default: QUARRY_DATA or .quarry)");
}

/** Opens Quarry for one command and closes it again, whatever happens. */
export async function withQuarry<T>(
  options: CommonOptions,
  work: (quarry: Quarry, output: Output) => Promise<T>,
  { isReader = false, areFilesMoved = false } = {},
): Promise<T> {
  // Help and wrong usage are told without it.
  const { openQuarry } = await import("../app.ts");
  const given = options.data === undefined ? {} : { dataFolder: options.data };
  if (isReader) refuseNothing(loadSettings({ given }).settings);
  const quarry = await openQuarry({ ...given, areFilesMoved }).catch((error) => {
    throw asUnusablePath(error) ?? error;
  });
  try {
    return await work(quarry, outputOf(options));
  } finally {
    await quarry.close();
  }
}

/** The file that holds the database; undefined when it is a server, or nothing that can be opened. */
export function databaseFile(url: string): string | undefined {
  const path = url.replace(/^(sqlite|file):(\/\/)?/, "");
  return /^[a-z][a-z0-9+]+:\/\//i.test(path) ? undefined : path;
}

/** A command that only reads must not make an empty database where the name was mistyped. */
function refuseNothing({ databaseUrl, dataFolder }: Settings): void {
  const file = databaseFile(databaseUrl);
  if (file === undefined || existsSync(file)) return;
  throw new QuarryError(
    "not_found",
    `there is nothing in ${dataFolder} yet: ingest something first, or name another folder with --data`,
  );
}

const UNUSABLE: Record<string, string> = {
  EEXIST: "it is a file, and a folder is needed",
  ENOTDIR: "a part of it is a file, and a folder is needed",
  EACCES: "it may not be written: its permissions do not allow it",
  EPERM: "it may not be written: its permissions do not allow it",
  EROFS: "it may not be written: its file system is read-only",
};

function asUnusablePath(error: unknown): QuarryError | undefined {
  const { code, path } = error as NodeJS.ErrnoException;
  const why = code === undefined ? undefined : UNUSABLE[code];
  if (why === undefined || path === undefined) return undefined;
  return new QuarryError("invalid_input", `${path}: ${why}; name another folder with --data`, {
    cause: error,
  });
}

export function outputOf(options: CommonOptions): Output {
  return createOutput({ json: options.json, monotonic: () => systemClock.monotonic() });
}

/** The documents that are meant. All are looked up first, so that a mistyped one stops the command before it did anything. */
export async function idsOf(quarry: Quarry, given: readonly string[]): Promise<string[]> {
  const ids = new Set<string>();
  for (const one of given) ids.add(await quarry.documents.idOf(one));
  return [...ids];
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!(Number.isInteger(value) && value >= 1)) throw new InvalidArgumentError("Give a whole number from 1.");
  return value;
}

/** `key=value`, as often as wanted. Values that are JSON are taken as such. */
export function keyValue(text: string, before: Record<string, unknown> = {}): Record<string, unknown> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("Give it as key=value.");
  return { ...before, [key]: parsed(value) };
}

function parsed(value: string): unknown {
  if (!/^(true|false|null|-?(0|[1-9]\d{0,14})(\.\d+)?)$/.test(value)) return value;
  return JSON.parse(value);
}

export function oneOf<Word extends string>(word: string, words: readonly Word[], what: string): Word {
  const found = words.find((known) => known === word);
  if (found) return found;
  throw new QuarryError(
    "invalid_input",
    `there is no ${what} ${JSON.stringify(word)}; there are ${words.join(", ")}`,
  );
}
