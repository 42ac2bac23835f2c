import { isoTime } from "../clock.ts";
import { QuarryError } from "../errors.ts";

/** Old tables are read as text, whatever types they have; this is how the text is understood. */

export type LegacyState = "pending" | "failed" | "finished";

const STATES: Readonly<Record<LegacyState, readonly string[]>> = {
  // Whoever was at work on it is gone, so it waits again.
  pending: [
    ...["pending", "queued", "waiting", "scheduled", "new", "retrying", "retry"],
    ...["in_progress", "processing", "running", "started"],
  ],
  failed: ["failed", "error", "dead", "dead_letter"],
  finished: ["done", "completed", "complete", "success", "succeeded", "finished", "processed", "deleted"],
};

export function stateOf(status: string | null): LegacyState {
  const word = status?.trim().toLowerCase() ?? "";
  if (word === "") return "pending";
  for (const [state, words] of Object.entries(STATES)) if (words.includes(word)) return state as LegacyState;
  throw new QuarryError("invalid_input", `its status ${JSON.stringify(status)} is not known`);
}

const TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?)? ?(?:(Z|UTC)|([+-]\d\d)(?::?(\d\d))?)?$/i;
/** Below these, a number counts seconds, milliseconds, microseconds; above, nanoseconds. */
const UNITS = [
  { below: 1e11, perMs: 1e-3 },
  { below: 1e14, perMs: 1 },
  { below: 1e17, perMs: 1e3 },
  { below: Number.POSITIVE_INFINITY, perMs: 1e6 },
];

/** ISO 8601 in UTC. A time without a zone is UTC, as SQLite's own are. Undefined when it cannot be read. */
export function timeOf(text: string | null): string | undefined {
  const ms = msOf(text?.trim() ?? "");
  if (ms === undefined || !(ms > 0 && ms < Date.UTC(3000, 0))) return undefined;
  return isoTime(ms);
}

function msOf(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) {
    const count = Number(text);
    return count / UNITS.find(({ below }) => count < below)!.perMs;
  }
  const [, date, clock = "00:00", fraction = "", , hours, minutes = "00"] = TIME.exec(text) ?? [];
  if (date === undefined) return undefined;
  const seconds = clock.length === 5 ? ":00" : "";
  const zone = hours === undefined ? "Z" : `${hours}:${minutes}`;
  const ms = Date.parse(`${date}T${clock}${seconds}${fraction.slice(0, 4)}${zone}`);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The nearest whole number of the range; `otherwise` when it is none at all. */
export function clamped(
  text: string | null,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const value = text === null || text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isNaN(value)) return otherwise;
  return Math.min(max, Math.max(min, Math.round(value)));
}

/** JSON as it is; any other text as a string. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function objectOf(text: string | null): Record<string, unknown> {
  if (text === null || text.trim() === "") return {};
  const value = jsonOf(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  return value === null ? {} : { legacy_metadata: value };
}
