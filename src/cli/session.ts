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
  { isReader = false } = {},
): Promise<T> {
  // Help and wrong usage are told without it.
  const { openQuarry } = await import("../app.ts");
  const given = options.data === undefined ? {} : { dataFolder: options.data };
  if (isReader) refuseNothing(loadSettings({ given }).settings);
  const quarry = await openQuarry(given);
  try {
    return await work(quarry, outputOf(options));
  } finally {
    await quarry.close();
  }
}

/** A command that only reads must not make an empty database where the name was mistyped. */
function refuseNothing({ databaseUrl, dataFolder }: Settings): void {
  const isServer = /^postgres(ql)?:/.test(databaseUrl);
  if (isServer || existsSync(databaseUrl.replace(/^(sqlite|file):(\/\/)?/, ""))) return;
  throw new QuarryError(
    "not_found",
    `there is nothing in ${dataFolder} yet: ingest something first, or name another folder with --data`,
  );
}

export function outputOf(options: CommonOptions): Output {
  return createOutput({ json: options.json, monotonic: () => systemClock.monotonic() });
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
