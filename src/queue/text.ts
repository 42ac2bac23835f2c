import { QuarryError } from "../errors.ts";

/** Enough to see what happened; a stack trace of a page does not belong in every list. */
export const ERROR_BYTES_MAX = 8 * 1024;
export const ROW_BYTES_MAX = 8 * 1024 * 1024;

/** `\u0000` and lone surrogates, which PostgreSQL refuses, as JSON writes them; not an escaped backslash before "u". */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/;

export function isStorable(json: string): boolean {
  return !UNSTORABLE.test(json);
}

export function cleanText(text: string): string {
  return text.replaceAll("\0", "").toWellFormed();
}

/** Results of work that is already done are mended rather than refused. */
export function cleanValue(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanValue);
  if (value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanValue(item)]));
  }
  return value;
}

export function errorText(reason: string): string {
  const text = cleanText(reason);
  if (Buffer.byteLength(text) <= ERROR_BYTES_MAX) return text;
  return `${Buffer.from(text)
    .subarray(0, ERROR_BYTES_MAX)
    .toString("utf8")
    .replace(/\uFFFD+$/, "")} …`;
}

export function refuseUnstorable(json: string, what: string): void {
  if (!isStorable(json)) {
    throw new QuarryError(
      "invalid_input",
      `${what} contains a NUL character or half of a surrogate pair, which databases cannot store: remove it`,
    );
  }
  if (json.length > ROW_BYTES_MAX) {
    throw new QuarryError(
      "invalid_input",
      `${what} is ${json.length} bytes, more than the ${ROW_BYTES_MAX} a row may carry: store it elsewhere and enqueue a reference`,
    );
  }
}
