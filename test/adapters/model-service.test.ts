import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { ServiceTime } from "../../src/adapters/model-pause.ts";
import { ModelService, type ModelServiceSettings, type Question } from "../../src/adapters/model-service.ts";
import { manualClock, pause } from "../../src/clock.ts";
import { createLog } from "../../src/log.ts";
import { type Misbehaviour, type ModelServer, startModelServer } from "../support/model-server.ts";

const KEY = "sk-canary-0123456789";

describe("asking a model service", () => {
  const never = new AbortController().signal;
  let server: ModelServer;
  let service: ModelService;
  let logged: string[];
  let pauses: number[];
  let clock: ReturnType<typeof manualClock>;

  /** Pauses take no time, and are written down. */
  const quickTime = (): ServiceTime => ({
    clock,
    sleep: async (ms) => {
      pauses.push(ms);
      clock.advance(ms);
    },
    random: () => 0.5,
  });
  const open = (settings: Partial<ModelServiceSettings> = {}) => {
    service?.close();
    service = new ModelService({
      name: "the test service",
      url: server.openAiUrl,
      urlSetting: "OPENAI_BASE_URL",
      keySetting: "OPENAI_API_KEY",
      apiKey: KEY,
      timeoutMs: 60_000,
      time: quickTime(),
      log: createLog({ destination: { write: (line) => void logged.push(line) } }),
      ...settings,
    });
    return service;
  };
  const ask = (question: Partial<Question> = {}) =>
    service.ask({
      path: "/embeddings",
      body: { model: "text-embedding-3-small", input: ["slate"] },
      signal: never,
      isSplittable: false,
      whenMissing: "Get the model.",
      ...question,
    });
  const warnings = () => logged.filter((line) => line.includes('"level":"warn"'));

  beforeEach(async () => {
    server = await startModelServer({ apiKey: KEY });
    logged = [];
    pauses = [];
    clock = manualClock();
    open();
  });
  afterEach(async () => {
    service.close();
    await server.close();
  });

  describe("that is busy", () => {
    const busy = (headers: Record<string, string> = {}, status = 429): Misbehaviour => ({
      kind: "status",
      status,
      headers,
    });

    it("waits as long as it is told to and asks again", async () => {
      server.misbehave(busy({ "retry-after": "7" }), busy({ "retry-after": "20" }, 503));
      await ask();
      assert.deepEqual(pauses, [7000, 20_000]);
      assert.equal(server.requests.length, 3);
      assert.equal(service.pause, undefined);
    });

    it("reads a date by the service's own clock", async () => {
      const date = "Wed, 01 Jan 2020 00:00:00 GMT";
      server.misbehave(busy({ "retry-after": "Wed, 01 Jan 2020 00:00:42 GMT", date }));
      await ask();
      assert.deepEqual(pauses, [42_000]);
    });

    it("waits at least a second and at most ten minutes", async () => {
      server.misbehave(
        busy({ "retry-after": "0" }),
        busy({ "retry-after": "-5" }),
        busy({ "retry-after": "86400" }),
      );
      await ask();
      assert.deepEqual(pauses, [1000, 1000, 600_000]);
    });

    it("waits longer and longer when it is not told how long, up to a minute or so", async () => {
      server.misbehave(...Array<Misbehaviour>(9).fill(busy({ "retry-after": "soon" })));
      await ask();
      const seconds = [1, 2, 4, 8, 16, 32, 60, 60, 60];
      assert.deepEqual(
        pauses,
        seconds.map((count) => count * 1125),
      );
      server.misbehave(busy());
      await ask();
      assert.equal(pauses.at(-1), 1125);
    });

    it("all callers wait together, with one warning, and the pause can be read", async () => {
      const { promise: over, resolve: end } = Promise.withResolvers<void>();
      open({
        time: {
          ...quickTime(),
          sleep: async (ms) => {
            pauses.push(ms);
            await over;
          },
        },
      });
      server.misbehave(busy({ "retry-after": "30" }), busy({ "retry-after": "30" }));
      const calls = [ask(), ask()];
      while (pauses.length < 2) await pause(1);
      calls.push(ask(), ask());
      await pause(20);
      assert.equal(server.requests.length, 2);
      assert.deepEqual(service.pause, {
        untilMs: clock.now() + 30_000,
        reason: 'answered 429: {"error":"scripted 429"}',
      });
      clock.advance(30_000);
      end();
      await Promise.all(calls);
      assert.equal(server.requests.length, 6);
      assert.equal(warnings().length, 1);
    });

    it("whoever waits can leave", async () => {
      open({ time: { ...quickTime(), sleep: pause } });
      server.misbehave(busy({ "retry-after": "600" }));
      const controller = new AbortController();
      const call = ask({ signal: controller.signal });
      while (!service.pause) await pause(1);
      controller.abort(new Error("not wanted any more"));
      await assert.rejects(call, /not wanted any more/);
    });

    it("an account without credit is not waited for", async () => {
      const body = '{"error":{"code":"insufficient_quota"}}';
      server.misbehave({ kind: "status", status: 429, body });
      await assert.rejects(ask(), { code: "model_unavailable", message: /credit/ });
    });

    it("what is more than it ever takes at once is to be asked in smaller parts", async () => {
      const body = '{"error":{"message":"Request too large: limit 40000, requested 90000"}}';
      server.misbehave({ kind: "status", status: 429, body });
      await assert.rejects(ask({ isSplittable: true }), { code: "model_failed", message: /too large/ });
    });
  });

  describe("that is gone", () => {
    it("looks for it with growing pauses, and finds it", async () => {
      server.misbehave({ kind: "reset" }, { kind: "status", status: 502 }, { kind: "status", status: 504 });
      await ask();
      assert.deepEqual(pauses, [500, 1000, 2000]);
      assert.equal(warnings().length, 3);
    });

    it("says after a minute which address and setting to check", async () => {
      open({ url: `http://user:canary@127.0.0.1:${await freePort()}/v1` });
      await assert.rejects(ask(), (error: Error & { code: string }) => {
        assert.equal(error.code, "model_unavailable");
        assert.match(error.message, /http:\/\/127\.0\.0\.1:\d+\/v1 .*ECONNREFUSED.*OPENAI_BASE_URL/);
        assert.doesNotMatch(error.message, /canary/);
        return true;
      });
      assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
    });

    it("others are told at once, until it is time to look again", async () => {
      server.misbehave(...Array<Misbehaviour>(9).fill({ kind: "status", status: 502 }));
      await assert.rejects(ask(), { code: "model_unavailable" });
      await assert.rejects(ask(), { code: "model_unavailable", message: /502/ });
      assert.equal(server.requests.length, 9);
      clock.advance(15_000);
      await ask();
      await ask();
      assert.equal(server.requests.length, 11);
    });

    it("one thing that takes too long is asked again", async () => {
      open({ timeoutMs: 100 });
      server.misbehave({ kind: "hang" }, { kind: "stall" });
      await ask();
      assert.equal(server.requests.length, 3);
    });

    it("many things that take too long at once are to be asked in smaller parts", async () => {
      open({ timeoutMs: 100 });
      for (const fault of [{ kind: "hang" }, { kind: "stall" }, { kind: "status", status: 504 }] as const) {
        server.misbehave(fault);
        await assert.rejects(ask({ isSplittable: true }), {
          code: "model_failed",
          message: /so much at once/,
        });
      }
      assert.equal(server.requests.length, 3);
      assert.deepEqual(pauses, []);
    });

    it("what fails again and again while others are answered is the question's fault", async () => {
      const poison = { model: "text-embedding-3-small", input: ["poison"] };
      const other = await startModelServer({
        misbehave: ({ inputs }) => (inputs[0] === "poison" ? { kind: "reset" } : undefined),
      });
      const sleepThenAsk: ServiceTime["sleep"] = async (ms) => {
        clock.advance(ms);
        await ask();
      };
      open({ url: other.openAiUrl, time: { ...quickTime(), sleep: sleepThenAsk } });
      await assert.rejects(ask({ body: poison }), { code: "model_failed", message: /answers others/ });
      await other.close();
    });

    it("a connection that the other side had closed in the meantime is no trouble", async () => {
      await ask();
      server.misbehave({ kind: "reset" });
      await ask();
      assert.deepEqual([server.requests.length, pauses.length], [3, 0]);
    });
  });

  describe("that refuses", () => {
    const cases = [
      [401, false, "model_unavailable", /401.*check OPENAI_API_KEY/],
      [403, true, "model_unavailable", /403.*check OPENAI_API_KEY/],
      [404, true, "model_unavailable", /404.*Get the model\./],
      [302, true, "model_unavailable", /302.*elsewhere.*check OPENAI_BASE_URL/],
      [400, true, "model_failed", /400/],
      [413, true, "model_failed", /413/],
      [422, true, "model_failed", /422/],
      [400, false, "invalid_input", /400/],
      [413, false, "invalid_input", /413/],
      [422, false, "invalid_input", /422/],
      [500, false, "model_failed", /500/],
      [500, true, "model_failed", /500/],
    ] as const;
    for (const [status, isSplittable, code, message] of cases)
      it(`${status} for ${isSplittable ? "many things" : "one thing"} is ${code}, at once`, async () => {
        server.misbehave({ kind: "status", status, headers: { location: `${server.url}/elsewhere` } });
        await assert.rejects(ask({ isSplittable }), { code, message });
        assert.equal(server.requests.length, 1);
        await ask();
      });

    it("is quoted in one short line", async () => {
      const body = `first\n\u001b[31msecond\u0000 ${"and more ".repeat(10_000)}`;
      server.misbehave({ kind: "status", status: 500, body });
      await assert.rejects(ask(), ({ message }: Error) => {
        assert.match(message, /answered 500: first \[31msecond and more/);
        assert.ok(message.length < 500);
        return true;
      });
    });
  });

  describe("that answers wrongly", () => {
    const wrong = {
      "cut off": { kind: "cut off" },
      "not JSON": { kind: "body", body: '{"data":[' },
      empty: { kind: "body", body: "" },
    } as const;
    for (const [name, fault] of Object.entries(wrong))
      it(`${name}: is not believed, and the next question is asked as ever`, async () => {
        server.misbehave(fault);
        await assert.rejects(ask(), { code: "model_failed" });
        await ask();
      });

    it("without end: is not read to it", async () => {
      open({ answerBytesMax: 10_000 });
      server.misbehave({ kind: "body", body: "x".repeat(1_000_000) });
      await assert.rejects(ask(), { code: "model_failed", message: /larger than 9 kB/ });
    });
  });

  describe("with a key", () => {
    it("sends it in one header and says it nowhere, though the service says it back", async () => {
      const echo = (key: string) => `{"error":"no: ${key}","headers":{"Authorization":"Bearer ${key}"}}`;
      const faults: Misbehaviour[] = [401, 400, 404, 500, 429, 502].map((status) => ({
        kind: "status",
        status,
        body: echo(KEY),
      }));
      faults.push({ kind: "body", body: `${KEY} is not JSON` });
      faults.push({ kind: "status", status: 500, body: `${" ".repeat(19_990)}${KEY}${KEY}` });
      faults.push({ kind: "status", status: 500, body: encodeURIComponent(KEY) });
      for (const fault of faults) {
        server.misbehave(fault);
        const told = await ask().then(
          () => "",
          (error: Error) => `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`,
        );
        assert.doesNotMatch(told, /canary|sk-/);
      }
      assert.doesNotMatch(logged.join(""), /canary/);
      assert.equal(warnings().length, 2);
      for (const { path, headers, body } of server.requests) {
        assert.equal(headers.authorization, `Bearer ${KEY}`);
        const { authorization: _, ...others } = headers;
        assert.doesNotMatch(JSON.stringify([path, others, body]), /canary/);
      }
    });

    it("is not sent where a service sends us", async () => {
      const thief = await startModelServer();
      server.misbehave({
        kind: "status",
        status: 307,
        headers: { location: `${thief.openAiUrl}/embeddings` },
      });
      await assert.rejects(ask(), { code: "model_unavailable" });
      assert.equal(thief.requests.length, 0);
      await thief.close();
    });
  });

  it("connections are used again", async () => {
    for (let count = 0; count < 5; count++) await ask();
    assert.equal(new Set(server.requests.map(({ connection }) => connection)).size, 1);
  });

  it("a call that is aborted in the middle ends at once", async () => {
    server.misbehave({ kind: "hang" });
    const controller = new AbortController();
    const call = ask({ signal: controller.signal });
    while (server.requests.length === 0) await pause(1);
    controller.abort(new Error("not wanted any more"));
    await assert.rejects(call, /not wanted any more/);
    await assert.rejects(ask({ signal: controller.signal }), /not wanted any more/);
    await ask();
  });

  it("closing ends calls on their way and calls that wait, and refuses new ones", async () => {
    open({ time: { ...quickTime(), sleep: pause } });
    server.misbehave({ kind: "hang" });
    const onItsWay = ask();
    while (server.requests.length === 0) await pause(1);
    server.misbehave({ kind: "status", status: 503, headers: { "retry-after": "600" } });
    const waiting = ask();
    while (!service.pause) await pause(1);
    const ended = Promise.all(
      [onItsWay, waiting].map((call) => assert.rejects(call, { code: "shutting_down" })),
    );
    service.close();
    await ended;
    await assert.rejects(ask(), { code: "shutting_down" });
  });

  it("an address that is none is refused when it is set", () => {
    for (const url of ["", "box:11434", "ftp://box"])
      assert.throws(() => open({ url }), { code: "invalid_input", message: /OPENAI_BASE_URL/ });
  });
});

/** Nobody listens there. */
async function freePort(): Promise<number> {
  const socket = createServer().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const address = socket.address();
  socket.close();
  await once(socket, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
