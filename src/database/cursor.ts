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
  throw strange("a page of this list");
}

/** Where a list that goes by time, and by id among equals, was left. */
export function decodePosition(
  cursor: string,
  { list, isId = () => true }: { list: string; isId?: (id: string) => boolean },
): [createdAt: string, id: string] {
  const [createdAt, id] = decodeCursor(cursor, 2).map(String) as [string, string];
  if (/^\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-]\d\d(:\d\d)?)$/.test(createdAt) && isId(id)) return [createdAt, id];
  throw strange(list);
}

function strange(list: string): QuarryError {
  return new QuarryError("invalid_input", `this cursor does not come from ${list}; start again without it`);
}
