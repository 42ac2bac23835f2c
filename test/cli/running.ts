import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const BIN = join(import.meta.dirname, "../../bin/quarry.js");

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A command as a user runs it in a folder, without a terminal. */
export class Running {
  readonly #child: ReturnType<typeof start>;
  readonly #ended: Promise<unknown[]>;
  out = "";
  err = "";

  constructor(folder: string, args: readonly string[], env: Record<string, string> = {}) {
    this.#child = start(folder, args, env);
    this.#ended = once(this.#child, "close");
    this.#child.stdout.on("data", (bytes) => {
      this.out += bytes;
    });
    this.#child.stderr.on("data", (bytes) => {
      this.err += bytes;
    });
  }

  /** What it reads on standard input. */
  say(text: string): void {
    this.#child.stdin.end(text);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Like `| head -1`, which goes away after what it wanted. */
  stopReading(): void {
    this.#child.stdout.destroy();
  }

  async until(isTrue: (running: Running) => boolean): Promise<void> {
    while (!isTrue(this)) {
      if (this.#child.exitCode !== null) throw new Error(`it ended before: ${this.out}${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async ended(): Promise<Ran> {
    const [code, signal] = (await this.#ended) as [number | null, NodeJS.Signals | null];
    return { code, signal, out: this.out, err: this.err };
  }
}

function start(folder: string, args: readonly string[], env: Record<string, string>) {
  return spawn(process.execPath, [BIN, ...args], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: "", QUARRY_DATA: "", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}
