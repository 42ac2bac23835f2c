import { writeFileSync } from "node:fs";
import { serveIsolate } from "../../src/adapters/isolate.ts";
import { QuarryError } from "../../src/errors.ts";

/** An isolate whose methods do what a parser may do to us. */
serveIsolate((setup: { greeting: string }) => ({
  greet: (name: string) => `${setup.greeting} ${name}`,
  pid: () => process.pid,
  environment: () => ({ ...process.env }),
  echo: (bytes: Uint8Array) => bytes,
  refuse: () => {
    throw new QuarryError("file_encrypted", "it is locked");
  },
  fail: () => {
    throw new TypeError("x is not a function");
  },
  hang: (marker?: string) => {
    if (marker) writeFileSync(marker, "");
    for (;;);
  },
  neverAnswer: () => new Promise(() => undefined),
  crash: () => process.kill(process.pid, "SIGSEGV"),
  exit: () => process.exit(3),
  eatHeap: () => {
    const eaten: unknown[] = [];
    for (;;) eaten.push(new Array(10_000).fill(eaten.length));
  },
  eatNative: async () => {
    const eaten: Buffer[] = [];
    for (;;) {
      eaten.push(Buffer.alloc(8 * 2 ** 20, 1));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
  /** Keeps what it took, as native libraries do. */
  growTo: (megabytes: number) => {
    (globalThis as { kept?: Buffer }).kept = Buffer.alloc(megabytes * 2 ** 20, 1);
    return process.pid;
  },
}));
