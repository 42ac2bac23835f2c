import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { besides, type IsolateSettings, Isolates } from "../../src/adapters/isolate.ts";
import { isQuarryError, type QuarryError } from "../../src/errors.ts";

const TIMEOUT = { timeout: 30_000 };
const it = (name: string, work: () => Promise<void>) => test(name, TIMEOUT, work);

const opened: Isolates[] = [];
function open(settings: Partial<IsolateSettings> = {}): Isolates {
  const isolates = new Isolates({
    name: "the hazard",
    module: besides(import.meta.url, "hazards"),
    size: 1,
    deadlineMs: 20_000,
    memoryMb: 256,
    setup: { greeting: "hello" },
    ...settings,
  });
  opened.push(isolates);
  return isolates;
}

afterEach(() => {
  for (const isolates of opened.splice(0)) isolates.close();
});

const withCode = (code: QuarryError["code"], words: RegExp) => (error: unknown) => {
  assert.ok(isQuarryError(error, code), String(error));
  assert.match(error.message, words);
  return true;
};

describe("isolates", () => {
  it("a call is answered by the module, which got its setup", async () => {
    assert.equal(await open().call("greet", "you"), "hello you");
  });

  it("bytes cross over as they are", async () => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, position) => position % 251);
    const echoed = await open().call<Uint8Array>("echo", bytes);
    assert.deepEqual(Buffer.from(echoed), Buffer.from(bytes));
  });

  it("a call that hangs is ended at its deadline, and the next one works", async () => {
    const isolates = open();
    await assert.rejects(
      isolates.call("hang", undefined, { deadlineMs: 1000 }),
      withCode("timeout", /the hazard took longer than 1 s/),
    );
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("a call that never answers is ended at its deadline", async () => {
    await assert.rejects(
      open().call("neverAnswer", undefined, { deadlineMs: 1000 }),
      withCode("timeout", /took longer/),
    );
  });

  it("a call that fills the heap fails alone, and the next one works", async () => {
    const isolates = open({ memoryMb: 96 });
    await assert.rejects(isolates.call("eatHeap", undefined), (error: unknown) =>
      isQuarryError(error, "resource_exhausted", "isolate_died"),
    );
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("a call that ends the isolate fails alone, and the next one works", async () => {
    const isolates = open();
    await assert.rejects(isolates.call("exit", undefined), withCode("isolate_died", /exit code 3/));
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("an error keeps its code and its words", async () => {
    const isolates = open();
    await assert.rejects(isolates.call("refuse", undefined), withCode("file_encrypted", /^it is locked$/));
    await assert.rejects(isolates.call("fail", undefined), withCode("internal", /x is not a function/));
    await assert.rejects(isolates.call("nonsense", undefined), withCode("internal", /no method nonsense/));
  });

  it("an aborted call fails with the reason at once, and the next one works", async () => {
    const isolates = open();
    const controller = new AbortController();
    const hanging = isolates.call("hang", undefined, { signal: controller.signal });
    const reason = new Error("no longer wanted");
    setTimeout(() => controller.abort(reason), 300);
    await assert.rejects(hanging, reason);
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("a call that is aborted while it waits never starts", async () => {
    const isolates = open();
    const controller = new AbortController();
    const first = isolates.call("greet", "first");
    const waiting = isolates.call("crash", undefined, { signal: controller.signal });
    controller.abort(new Error("changed my mind"));
    await assert.rejects(waiting, /changed my mind/);
    assert.equal(await first, "hello first");
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("closing ends what runs and what waits", async () => {
    const isolates = open();
    const ended = [isolates.call("hang", undefined), isolates.call("greet", "late")].map((call) =>
      assert.rejects(call, withCode("shutting_down", /the hazard/)),
    );
    isolates.close();
    await Promise.all(ended);
    await assert.rejects(isolates.call("greet", "later"), withCode("shutting_down", /closed/));
  });

  it("what cannot be sent fails the call, and the next one works", async () => {
    const isolates = open();
    await assert.rejects(isolates.call("echo", { work: () => undefined }), /could not be cloned/);
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("a module that cannot be loaded fails the call", async () => {
    const isolates = open({ module: besides(import.meta.url, "not-there") });
    await assert.rejects(isolates.call("greet", "you"), withCode("isolate_died", /the hazard died/));
  });

  it("a native crash fails its call and leaves its neighbours alone", async () => {
    const isolates = open({ size: 2 });
    const neighbour = isolates.call("neverAnswer", undefined, { deadlineMs: 2000 });
    const survived = assert.rejects(neighbour, withCode("timeout", /took longer/));
    await assert.rejects(isolates.call("crash", undefined), withCode("isolate_died", /SIGSEGV/));
    await survived;
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("native memory counts", async () => {
    const isolates = open();
    await assert.rejects(
      isolates.call("eatNative", undefined),
      withCode("resource_exhausted", /needed more than 256 MB/),
    );
    assert.equal(await isolates.call("greet", "again"), "hello again");
  });

  it("an isolate is used again, unless the last call left it large", async () => {
    const isolates = open({ memoryMb: 400 });
    const first = await isolates.call<number>("pid", undefined);
    assert.equal(await isolates.call("growTo", 10), first);
    assert.equal(await isolates.call("growTo", 280), first);
    assert.notEqual(await isolates.call("pid", undefined), first);
  });

  it("Ctrl-C, which reaches every process of a terminal, does not end a call", async () => {
    const isolates = open();
    const pid = await isolates.call<number>("pid", undefined);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.kill(pid, signal);
    assert.equal(await isolates.call("greet", "you"), "hello you");
    assert.equal(await isolates.call("pid", undefined), pid);
  });

  it("an aborted call leaves no process behind", async () => {
    const isolates = open();
    const pid = await isolates.call<number>("pid", undefined);
    const controller = new AbortController();
    const hanging = isolates.call("hang", undefined, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await assert.rejects(hanging, /enough/);
    await gone(pid);
  });

  it("secrets of our environment are not in theirs", async () => {
    process.env.QUARRY_TEST_SECRET = "canary";
    const environment = await open().call("environment", undefined);
    delete process.env.QUARRY_TEST_SECRET;
    assert.doesNotMatch(JSON.stringify(environment), /canary/);
  });

  it("a program with idle isolates ends by itself, and they end with it", async () => {
    const { program, pid } = await start();
    if (program.exitCode === null) await once(program, "exit");
    assert.equal(program.exitCode, 0);
    await gone(pid);
  });

  it("a program that is killed takes along the isolate that hangs", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-isolate-"));
    const { program, pid } = await start(join(folder, "hangs"));
    program.kill("SIGKILL");
    await gone(pid);
    await rm(folder, { recursive: true });
  });
});

async function start(...marker: string[]): Promise<{ program: ChildProcess; pid: number }> {
  const path = fileURLToPath(new URL("isolate-program.ts", import.meta.url));
  const program = spawn(process.execPath, [path, ...marker], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(program.stdout!, "data")) as [Buffer];
  return { program, pid: Number(line.toString()) };
}

/** Waits for as long as the test may take. */
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(50);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
