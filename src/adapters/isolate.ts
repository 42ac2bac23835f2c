import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker as Thread } from "node:worker_threads";
import { type ErrorCode, isQuarryError, messageOf, QuarryError } from "../errors.ts";

/**
 * Work that may hang, eat memory or crash runs in an isolate: a process that is given one call at a time and is
 * killed when the call takes too long, grows too large or is no longer wanted. Its death is the failure of that
 * call and of nothing else; the next call gets a new one. A thread would not do: one that fills its heap takes the
 * whole program along, not always but often.
 */
export interface IsolateSettings {
  /** For messages: "the PDF reader". */
  readonly name: string;
  /** A module that calls `serveIsolate`. */
  readonly module: URL;
  /** How many run at once. */
  readonly size: number;
  readonly deadlineMs: number;
  readonly memoryMb: number;
  /** Handed to the module once, when an isolate starts. */
  readonly setup?: unknown;
  /** False for isolates that are costly to start: an aborted call is then only forgotten. */
  readonly isKilledOnAbort?: boolean;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

interface Call {
  readonly method: string;
  readonly input: unknown;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Request = { readonly method: string; readonly input: unknown } | { readonly setup: unknown };
type Answer =
  | { readonly value: unknown }
  | { readonly error: { readonly code: ErrorCode | undefined; readonly message: string } };

/** A process as seen from here. */
interface Channel {
  send(request: Request): void;
  onAnswer(listener: (answer: Answer) => void): void;
  onEnd(listener: (how: string) => void): void;
  /** Resident memory, where the system tells. */
  residentMb(): number | undefined;
  ref(): void;
  unref(): void;
  kill(): void;
}

const MEMORY_LOOK_EVERY_MS = 100;
const IDLE_MS = 30_000;
/** Of its memory; one that is larger when it has answered is not used again. */
const LARGE_SHARE = 0.75;

/** A pool of isolates of one kind. Started when needed, ended when idle; keeps no process alive by itself. */
export class Isolates {
  readonly #settings: IsolateSettings;
  readonly #waiting: Call[] = [];
  readonly #members = new Set<Member>();
  #isClosed = false;

  constructor(settings: IsolateSettings) {
    this.#settings = settings;
  }

  call<T>(method: string, input: unknown, options: CallOptions = {}): Promise<T> {
    const { signal } = options;
    if (this.#isClosed)
      return Promise.reject(new QuarryError("shutting_down", `${this.#settings.name} is closed`));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const call: Call = {
      method,
      input,
      signal,
      resolve,
      reject,
      deadlineMs: options.deadlineMs ?? this.#settings.deadlineMs,
    };
    const onAbort = () => {
      const position = this.#waiting.indexOf(call);
      if (position >= 0) this.#waiting.splice(position, 1);
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(call);
    this.#next();
    return promise.finally(() => signal?.removeEventListener("abort", onAbort)) as Promise<T>;
  }

  close(): void {
    this.#isClosed = true;
    for (const call of this.#waiting.splice(0))
      call.reject(new QuarryError("shutting_down", `${this.#settings.name} is closed`));
    for (const member of this.#members) member.kill("it was closed");
  }

  #next(): void {
    while (this.#waiting.length > 0) {
      const idle = [...this.#members].find((member) => member.isIdle);
      if (!idle && this.#members.size >= this.#settings.size) return;
      const call = this.#waiting.shift()!;
      try {
        (idle ?? this.#start()).run(call);
      } catch (error) {
        // The system has no room for another process, or the input cannot be sent.
        call.reject(error);
      }
    }
  }

  #start(): Member {
    const member: Member = new Member(this.#settings, {
      onFree: () => this.#next(),
      onGone: () => {
        this.#members.delete(member);
        if (!this.#isClosed) this.#next();
      },
    });
    this.#members.add(member);
    return member;
  }
}

class Member {
  readonly #settings: IsolateSettings;
  readonly #channel: Channel;
  readonly #onFree: () => void;
  #call: Call | undefined;
  #isGone = false;
  /** Why we killed it, when we did. */
  #reason: QuarryError | undefined;
  #timers: NodeJS.Timeout[] = [];
  #stopListening: (() => void) | undefined;

  constructor(settings: IsolateSettings, on: { onFree: () => void; onGone: () => void }) {
    this.#settings = settings;
    this.#onFree = on.onFree;
    this.#channel = startProcess(settings);
    this.#channel.onAnswer((answer) => this.#answered(answer));
    this.#channel.onEnd((how) => {
      this.#isGone = true;
      const call = this.#release();
      call?.reject(this.#reason ?? new QuarryError("isolate_died", `${settings.name} died: ${how}`));
      on.onGone();
    });
    this.#channel.send({ setup: settings.setup });
  }

  get isIdle(): boolean {
    return this.#call === undefined && !this.#isGone && !this.#reason;
  }

  run(call: Call): void {
    this.#channel.send({ method: call.method, input: call.input });
    this.#release();
    this.#call = call;
    this.#channel.ref();
    const { name, memoryMb, isKilledOnAbort = true } = this.#settings;
    const deadline = setTimeout(
      () => this.#kill("timeout", `${name} took longer than ${Math.round(call.deadlineMs / 1000)} s`),
      call.deadlineMs,
    );
    const watch = setInterval(() => {
      const usedMb = this.#channel.residentMb();
      if (usedMb !== undefined && usedMb > memoryMb)
        this.#kill("resource_exhausted", `${name} needed more than ${memoryMb} MB of memory`);
    }, MEMORY_LOOK_EVERY_MS);
    this.#timers = [deadline, watch];
    const onAbort = () => isKilledOnAbort && this.#kill("shutting_down", `${name} was interrupted`);
    call.signal?.addEventListener("abort", onAbort, { once: true });
    this.#stopListening = () => call.signal?.removeEventListener("abort", onAbort);
  }

  kill(why: string): void {
    this.#kill("shutting_down", `${this.#settings.name}: ${why}`);
  }

  #kill(code: ErrorCode, message: string): void {
    this.#reason ??= new QuarryError(code, message);
    this.#channel.kill();
  }

  #answered(answer: Answer): void {
    const call = this.#release();
    if ("value" in answer) call?.resolve(answer.value);
    else call?.reject(new QuarryError(answer.error.code ?? "internal", answer.error.message));
    // What this call left behind would count against the next.
    const usedMb = this.#channel.residentMb() ?? 0;
    if (usedMb > this.#settings.memoryMb * LARGE_SHARE) this.kill("it had grown large");
    this.#onFree();
    if (this.isIdle) {
      const timer = setTimeout(() => this.kill("it was idle"), IDLE_MS).unref();
      this.#timers = [timer];
    }
  }

  /** Forgets the call and everything that watched it. */
  #release(): Call | undefined {
    const call = this.#call;
    this.#call = undefined;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
    this.#stopListening?.();
    this.#channel.unref();
    return call;
  }
}

function startProcess(settings: IsolateSettings): Channel {
  const child: ChildProcess = fork(fileURLToPath(settings.module), [], {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    execArgv: [`--max-old-space-size=${settings.memoryMb}`],
    // Whatever a hostile file may make a parser do, it finds no secrets in its environment.
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, NODE_NO_WARNINGS: "1" },
  });
  // A process that could not be started has an error and no exit.
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on("error", (error) => child.pid === undefined && resolve(messageOf(error)));
  });
  return {
    send: (request) => void child.send(request, () => undefined),
    onAnswer: (listener) => child.on("message", (answer) => listener(answer as Answer)),
    onEnd: (listener) => void ended.then(listener),
    residentMb: () => residentMbOf(child.pid),
    ref: () => {
      child.ref();
      child.channel?.ref();
    },
    unref: () => {
      child.unref();
      child.channel?.unref();
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

const PAGES_PER_MB = 256;

/** Only Linux says it for nothing; elsewhere the limit on JavaScript's heap has to do. */
function residentMbOf(pid: number | undefined): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) / PAGES_PER_MB;
  } catch {
    return undefined;
  }
}

export type IsolateMethods = Record<string, (input: never) => unknown>;

/** The other end: answers calls one after the other. `open` is given what the settings call `setup`. */
export function serveIsolate(open: (setup: never) => IsolateMethods | Promise<IsolateMethods>): void {
  let methods: Promise<IsolateMethods> | undefined;
  const answer = (message: Answer) => process.send?.(message);
  const receive = async (request: Request) => {
    if ("setup" in request) {
      methods = Promise.resolve(open(request.setup as never));
      // Reported by the first call.
      methods.catch(() => undefined);
      return;
    }
    try {
      const method = (await methods!)[request.method];
      if (!method) throw new QuarryError("internal", `there is no method ${request.method}`);
      answer({ value: await method(request.input as never) });
    } catch (error) {
      answer({
        error: { code: isQuarryError(error) ? error.code : undefined, message: messageOf(error) },
      });
    }
  };
  process.on("message", receive);
  process.on("disconnect", () => process.exit());
  // Ctrl-C reaches every process of a terminal. What runs may be finished; whoever started us ends us.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => undefined);
  endWithParent();
}

const ORPHAN_LOOK_EVERY_MS = 1000;

/** A parser that hangs never hears that its parent is gone. A thread beside it does. */
function endWithParent(): void {
  const watch = `setInterval(
    () => process.ppid === ${process.ppid} || process.kill(process.pid, "SIGKILL"),
    ${ORPHAN_LOOK_EVERY_MS},
  )`;
  new Thread(watch, { eval: true, stdout: false, stderr: false }).unref();
}

/** The module beside this one, as it is called in a checkout (.ts) or in a published package (.js). */
export function besides(moduleUrl: string, name: string): URL {
  return new URL(`./${name}${moduleUrl.endsWith(".ts") ? ".ts" : ".js"}`, moduleUrl);
}
