import { type Command, InvalidArgumentError } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
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
): Promise<T> {
  // Help and wrong usage are told without it.
  const { openQuarry } = await import("../app.ts");
  const quarry = await openQuarry(options.data === undefined ? {} : { dataFolder: options.data });
  try {
    return await work(quarry, outputOf(options));
  } finally {
    await quarry.close();
  }
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
  if (!/^(true|false|null|-?\d+(\.\d+)?)$/.test(value)) return value;
  return JSON.parse(value);
}
