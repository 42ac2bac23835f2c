import { createHash, randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";

let lastMs = 0;
let sequence = 0;

/**
 * A UUID of version 7. Ids made by one process sort in the order they were made, so rows of one bulk
 * insert, which share their `created_at`, keep their order.
 */
export function uuidv7(nowMs: number): string {
  // Random but for six bits, and from a supply: asking for a few bytes takes three times as long.
  const random = randomUUID();
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = Number.parseInt(random.slice(0, 3), 16) & 0x7ff;
  } else if (++sequence > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  const time = lastMs.toString(16).padStart(12, "0");
  const count = sequence.toString(16).padStart(3, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${random.slice(19)}`;
}

/** The same for the same parts, wherever and whenever it is made: what is written twice under it is written once. */
export function uuidOf(...parts: readonly string[]): string {
  const bytes = createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const text = bytes.toString("hex");
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
    "-",
  );
}

/** Random per start: a host name or process id that comes back must not look like the worker that died. */
export function workerId(): string {
  return `${hostname().slice(0, 20)}-${process.pid}-${randomBytes(4).toString("hex")}`;
}

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
