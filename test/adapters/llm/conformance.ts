import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { z } from "zod";
import type { LlmServiceSettings } from "../../../src/adapters/llm/service.ts";
import { completeAs, type Llm, type LlmRequest } from "../../../src/adapters/llm.ts";
import type { ServiceTime } from "../../../src/adapters/model-pause.ts";
import { manualClock, pause } from "../../../src/clock.ts";
import { messageOf } from "../../../src/errors.ts";
import { createLog } from "../../../src/log.ts";
import type { ChatRequest } from "../../support/model-chat.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";

export const KEY = "sk-canary-0123456789";

const REQUEST: LlmRequest = {
  system: "You answer.",
  messages: [{ role: "user", content: "Which stone is soft?" }],
  tokensMax: 200,
};
const Stone = z.strictObject({ stone: z.string().min(1), hardness: z.int() });

export interface LlmUnderTest {
  readonly name: string;
  readonly path: string;
  open(server: ModelServer, settings: Omit<LlmServiceSettings, "model">, model?: string): Llm;
}

/** What every language model owes its callers, whatever its service does. */
export function testLlm({ name, path, open }: LlmUnderTest): void {
  describe(`completing with ${name}`, () => {
    const never = new AbortController().signal;
    let server: ModelServer;
    let llm: Llm;
    let logged: string[];
    let pauses: number[];
    let clock: ReturnType<typeof manualClock>;
    let chat: (asked: ChatRequest) => string;

    const quickTime = (): ServiceTime => ({
      clock,
      sleep: async (ms) => {
        pauses.push(ms);
        clock.advance(ms);
      },
      random: () => 0.5,
    });
    const opened = (settings: Partial<LlmServiceSettings> = {}, model?: string) => {
      const log = createLog({ destination: { write: (line) => void logged.push(line) } });
      return open(server, { timeoutMs: 60_000, time: quickTime(), log, ...settings }, model);
    };
    const complete = (request: Partial<LlmRequest> = {}) => llm.complete({ ...REQUEST, ...request }, never);
    const answerAs = () => completeAs(llm, { ...REQUEST, schema: Stone }, never);

    beforeEach(async () => {
      chat = () => "Talc.";
      server = await startModelServer({ apiKey: KEY, chat: (asked) => chat(asked) });
      logged = [];
      pauses = [];
      clock = manualClock();
      llm = opened();
    });
    afterEach(async () => {
      await llm.close();
      await server.close();
      assert.ok(!logged.join().includes(KEY), "the key is in the log");
    });

    it("says what the model says, and what it cost", async () => {
      const { text, tokens } = await complete();
      assert.equal(text, "Talc.");
      assert.equal(tokens, server.answered.tokens);
      assert.equal(server.requests[0]?.path, path);
    });

    it("the system's words come first and apart, then the messages in their order", async () => {
      const messages = [
        { role: "user", content: "Name a stone." },
        { role: "assistant", content: "Slate." },
        { role: "user", content: "Another." },
      ] as const;
      await complete({ messages });
      assert.deepEqual(server.requests[0]?.body.messages, [
        { role: "system", content: REQUEST.system },
        ...messages,
      ]);
    });

    it("estimates the cost where the service does not tell", async () => {
      const silent = await startModelServer({ hasNoUsage: true });
      const other = open(silent, { timeoutMs: 60_000 });
      const { tokens } = await other.complete(REQUEST, never);
      await other.close();
      await silent.close();
      assert.ok(tokens >= 8 && tokens < 40);
    });

    it("what a model thought before it answered is no answer", async () => {
      chat = () => "<think>\nIs it slate? No.\n</think>\n\nTalc.";
      assert.equal((await complete()).text, "Talc.");
    });

    it("a service that is busy is asked again when it said to", async () => {
      server.misbehave({ kind: "status", status: 429, headers: { "retry-after": "7" } });
      assert.equal((await complete()).text, "Talc.");
      assert.deepEqual(pauses, [7000]);
    });

    it("an error of the service is told at once, without the key it may say back", async () => {
      server.misbehave({ kind: "status", status: 500, body: `{"error":"bad api_key=${KEY}"}` });
      await assert.rejects(complete(), (error) => {
        assert.ok(!messageOf(error).includes(KEY));
        return (error as { code?: string }).code === "model_failed" && /500/.test(messageOf(error));
      });
      assert.equal(server.requests.length, 1);
    });

    it("an answer that is cut off, malformed, empty or of another form is a failure", async () => {
      const code = { code: "model_failed" };
      server.misbehave({ kind: "cut off" });
      await assert.rejects(complete(), code);
      server.misbehave({ kind: "body", body: "{not json" });
      await assert.rejects(complete(), code);
      server.misbehave({ kind: "body", body: '{"message":{},"choices":[]}' });
      await assert.rejects(complete(), code);
      server.misbehave({ kind: "says", text: " <think>hm</think> " });
      await assert.rejects(complete(), { ...code, message: /empty/ });
      server.misbehave({ kind: "says", text: "Talc is a", isCut: true });
      await assert.rejects(complete(), { ...code, message: /more than 200 tokens/ });
      assert.equal((await complete()).text, "Talc.");
    });

    it("a slow service is waited for; one that says nothing is asked again and then given up", async () => {
      server.misbehave({ kind: "delay", ms: 30 });
      assert.equal((await complete()).text, "Talc.");
      await llm.close();
      const time = quickTime();
      llm = opened({ timeoutMs: 20, outageMsMax: 1, time });
      server.misbehave({ kind: "hang" }, { kind: "hang" });
      await assert.rejects(complete(), { code: "model_unavailable", message: /no answer within/ });
      assert.ok(pauses.length > 0);
    });

    it("a model that is missing is to be got", async () => {
      const other = opened({}, "nowhere");
      await assert.rejects(other.complete(REQUEST, never), { code: "model_unavailable", message: /nowhere/ });
      await other.close();
    });

    it("a call that is aborted ends at once and leaves the next one alone", async () => {
      const controller = new AbortController();
      server.misbehave({ kind: "hang" });
      const call = llm.complete(REQUEST, controller.signal);
      while (server.requests.length === 0) await pause(1);
      controller.abort(new Error("not wanted any more"));
      await assert.rejects(call, /not wanted any more/);
      assert.equal((await complete()).text, "Talc.");
    });

    it("a closed one refuses", async () => {
      await llm.close();
      await assert.rejects(complete(), { code: "shutting_down" });
    });

    describe("in the form of a schema", () => {
      it("the service is told the form, and the answer is checked", async () => {
        chat = ({ schema }) => {
          assert.deepEqual(schema?.required, ["stone", "hardness"]);
          return '{"stone":"talc","hardness":1}';
        };
        assert.deepEqual(await answerAs(), { stone: "talc", hardness: 1 });
      });

      it("an answer in a code block is read", async () => {
        chat = () => '```json\n{"stone":"talc","hardness":1}\n```';
        assert.deepEqual(await answerAs(), { stone: "talc", hardness: 1 });
      });

      it("an answer of another form is told what is wrong with it, once", async () => {
        server.misbehave({ kind: "says", text: '{"stone":"talc","hardness":"soft"}' });
        chat = ({ messages }) => {
          assert.deepEqual(
            messages.map(({ role }) => role),
            ["user", "assistant", "user"],
          );
          assert.match(messages[2]!.content, /hardness/);
          return '{"stone":"talc","hardness":1}';
        };
        assert.deepEqual(await answerAs(), { stone: "talc", hardness: 1 });
        assert.equal(server.requests.length, 2);
      });

      it("and given up after the second", async () => {
        chat = () => "Talc, I think.";
        await assert.rejects(answerAs(), { code: "model_failed", message: /not JSON/ });
        assert.equal(server.requests.length, 2);
      });
    });
  });
}
