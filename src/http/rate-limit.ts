import { isIPv6 } from "node:net";
import type { Clock } from "../clock.ts";

const BUCKETS_MAX = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Token buckets: each name may do so much a minute, and all of it at once. Those asked longest ago are forgotten first. */
export class RateLimit {
  readonly #perMinute: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: number, clock: Clock) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** Takes one. Returns the seconds to wait where there is none, else 0. */
  take(name: string): number {
    const bucket = this.#filled(name);
    if (bucket.tokens < 1) return this.#secondsUntilOne(bucket);
    bucket.tokens -= 1;
    return 0;
  }

  /** As `take`, without taking. */
  wait(name: string): number {
    const bucket = this.#filled(name);
    return bucket.tokens < 1 ? this.#secondsUntilOne(bucket) : 0;
  }

  #filled(name: string): Bucket {
    const nowMs = this.#clock.monotonic();
    const bucket = this.#buckets.get(name) ?? { tokens: this.#perMinute, filledAt: nowMs };
    const gained = ((nowMs - bucket.filledAt) / MINUTE_MS) * this.#perMinute;
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + gained);
    bucket.filledAt = nowMs;
    // Anew at the end: the order of the map is who asked when.
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size > BUCKETS_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
    return bucket;
  }

  #secondsUntilOne({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil((((1 - tokens) / this.#perMinute) * MINUTE_MS) / 1000));
  }
}

/** Who has one IPv6 address has 2^64 of them. */
export function addressName(address: string): string {
  if (!isIPv6(address) || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("%")[0]!.split("::");
  const first = head.split(":").filter(Boolean);
  const last = tail.split(":").filter(Boolean);
  const isShortened = address.includes("::");
  const zeros = isShortened ? Array<string>(8 - first.length - last.length).fill("0") : [];
  return `${[...first, ...zeros, ...last].slice(0, 4).join(":")}::/64`;
}
