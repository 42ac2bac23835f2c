import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CrashWorkerOptions, CrashWorkerReport } from "./worker.ts";

const CONCURRENCY = 4;
const EXIT_WITHIN_MS = 15_000;

/** A worker in a process of its own, seen from outside. */
export class WorkerProcess {
  readonly label: string;
  readonly started: Promise<void>;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Numbers of the rows whose handlers have begun. */
  readonly began: number[] = [];
  refused = 0;
  isStarted = false;
  isStopped = false;
  /** True once this end was asked for; every other end is a failure. */
  mayExit = false;
  readonly #child: ChildProcess;
  #lastWords = "";

  constructor(options: CrashWorkerOptions) {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    this.label = options.label;
    this.#child = fork(join(import.meta.dirname, "worker.ts"), [JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env,
    });
    this.#child.stderr?.on("data", (text) => {
      this.#lastWords = (this.#lastWords + text).slice(-4_000);
    });
    const started = Promise.withResolvers<void>();
    this.started = started.promise;
    this.#child.on("message", (report: CrashWorkerReport) => {
      switch (report.kind) {
        case "started":
          this.isStarted = true;
          return started.resolve();
        case "began":
          return void this.began.push(report.n);
        case "refused":
          this.refused++;
          return;
        default:
          return report satisfies never;
      }
    });
    // What it said last may still be in the pipe when it exits.
    this.exited = once(this.#child, "close").then(([code, signal]) => ({ code, signal }));
    void this.exited.then(({ code, signal }) =>
      started.reject(
        new Error(`${this.label} ended at its start (code ${code}, ${signal}): ${this.lastWords}`),
      ),
    );
    // Whoever does not wait for the start sees the end.
    this.started.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get lastWords(): string {
    return this.#lastWords;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(): Promise<void> {
    this.mayExit = true;
    if (this.isAlive) this.kill("SIGKILL");
    await this.exited;
  }
}

/** Keeps so many workers alive, whatever happens to them. */
export class Fleet {
  readonly all: WorkerProcess[] = [];
  /** Processes that ended although nobody ended them. */
  readonly casualties: string[] = [];
  readonly #url: string;
  #isClosing = false;

  constructor(url: string, size: number) {
    this.#url = url;
    for (let i = 0; i < size; i++) this.#spawn();
  }

  get living(): WorkerProcess[] {
    return this.all.filter((worker) => worker.isAlive);
  }

  get refused(): number {
    return this.all.reduce((sum, worker) => sum + worker.refused, 0);
  }

  #spawn(): void {
    const label = `w${this.all.length + 1}`;
    const worker = new WorkerProcess({ url: this.#url, label, concurrency: CONCURRENCY, isDeaf: true });
    this.all.push(worker);
    void worker.exited.then(({ code, signal }) => {
      if (!worker.mayExit) {
        const words = worker.lastWords || "(it said nothing)";
        this.casualties.push(`worker ${label} ended by itself (code ${code}, ${signal}): ${words}`);
      }
      if (!this.#isClosing) this.#spawn();
    });
  }

  /** Asks them to stop, and sees that they do: with exit code 0, and by themselves. */
  async stop(): Promise<void> {
    this.#isClosing = true;
    const { living } = this;
    await Promise.all(living.map((worker) => worker.started));
    for (const worker of living) {
      worker.mayExit = true;
      worker.kill("SIGTERM");
    }
    const late = sleep(EXIT_WITHIN_MS, "late" as const, { ref: false });
    for (const worker of living) {
      const end = await Promise.race([worker.exited, late]);
      assert.notEqual(end, "late", `worker ${worker.label} does not stop: ${worker.lastWords}`);
      assert.deepEqual(end, { code: 0, signal: null }, `worker ${worker.label}: ${worker.lastWords}`);
    }
  }

  async end(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.all.map((worker) => worker.end()));
  }
}
