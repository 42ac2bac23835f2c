import { QuarryError } from "../errors.ts";

/** Where a page of a list ended, in a form that callers hand back and do not read. */
export function encodeCursor(values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

export function decodeCursor(cursor: string, length: number): unknown[] {
  try {
    const values = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (
      Array.isArray(values) &&
      values.length === length &&
      values.every((value) => ["string", "number"].includes(typeof value))
    )
      return values;
  } catch {
    // Falls through to the one error below.
  }
  throw new QuarryError(
    "invalid_input",
    "this cursor does not come from a page of this list; start again without it",
  );
}
