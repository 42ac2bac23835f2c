import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import sharp from "sharp";
import { openTesseract } from "../../../src/adapters/ocr/tesseract.ts";
import { openVisionOcr, type VisionSettings } from "../../../src/adapters/ocr/vision.ts";
import { transcriptOf } from "../../../src/adapters/ocr/vision-answer.ts";
import type { Ocr } from "../../../src/adapters/ocr.ts";
import type { ChatRequest } from "../../support/model-chat.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { drawPictures, type OcrPictures, testOcr } from "./conformance.ts";

const KEY = "sk-canary-0123456789";

const open = (server: ModelServer, settings: Partial<VisionSettings> = {}): Ocr =>
  openVisionOcr({
    baseUrl: server.openAiUrl,
    urlSetting: "OPENAI_BASE_URL",
    keySetting: "OPENAI_API_KEY",
    apiKey: KEY,
    model: "gpt-test",
    timeoutMs: 60_000,
    threads: 1,
    ...settings,
  });

testOcr("a vision model (the in-repo server, which really reads what it is sent)", async () => {
  const eyes = await openTesseract({ languages: ["eng"], threads: 1 });
  const chat = async ({ pictures }: ChatRequest) =>
    (await eyes.recognise(pictures![0]!, new AbortController().signal)).markdown || "[empty page]";
  const server = await startModelServer({ apiKey: KEY, chat, sureness: 0.97 });
  const ocr = open(server);
  const close = async () => {
    await ocr.close();
    await server.close();
    await eyes.close();
  };
  return { ...ocr, close };
});

describe("OCR by a vision model", () => {
  const { signal } = new AbortController();
  let server: ModelServer;
  let ocr: Ocr;
  let pictures: OcrPictures;
  let sent: Buffer[];

  before(async () => {
    pictures = await drawPictures();
    server = await startModelServer({
      apiKey: KEY,
      sureness: 0.9,
      chat: (asked) => {
        sent.push(...asked.pictures!);
        return "# Notice\n\nDeliveries on Tuesdays.";
      },
    });
    ocr = open(server);
  });
  after(async () => {
    await ocr.close();
    await server.close();
  });
  const read = (picture: Uint8Array = pictures.notice) => {
    sent = [];
    server.forget();
    return ocr.recognise(picture, signal);
  };

  it("gives the page as the model wrote it, how sure it was, and what it cost", async () => {
    const before = server.answered.tokens;
    const { markdown, confidence, tokens } = await read();
    assert.equal(markdown, "# Notice\n\nDeliveries on Tuesdays.");
    assert.ok(Math.abs(confidence - 0.9) < 1e-9);
    assert.equal(tokens, server.answered.tokens - before);
    assert.ok(sent[0]!.equals(pictures.notice), "a picture that will do is sent as it is");
  });

  it("scales down what is larger than the model looks at, PNG and JPEG", async () => {
    const small = open(server, { sideMax: 400 });
    const { width, height } = await sharp(pictures.letter).metadata();
    for (const picture of [pictures.letter, await sharp(pictures.letter).jpeg().toBuffer()]) {
      sent = [];
      await small.recognise(picture, signal);
      const shown = await sharp(sent[0]!).metadata();
      assert.deepEqual([shown.width, shown.height], [400, Math.round((height * 400) / width)]);
    }
    await small.close();
  });

  it("a service that cannot say how sure its model is is asked without, and not again", async () => {
    const silent = await startModelServer({ chat: () => "Text." });
    const other = open(silent);
    for (const _ of [1, 2]) assert.equal((await other.recognise(pictures.notice, signal)).confidence, 0.85);
    await other.close();
    await silent.close();
    assert.deepEqual(
      silent.requests.map(({ body }) => "logprobs" in body),
      [true, false, false],
    );
  });

  it("a page on which nothing is drawn is not sent at all", async () => {
    assert.deepEqual(await read(pictures.blank), { markdown: "", confidence: 1 });
    assert.equal(server.requests.length, 0);
  });

  it("a page on which the model finds nothing is empty", async () => {
    for (const text of ["[empty page]", "[Empty]", "(blank page)", "```markdown\n```"]) {
      server.misbehave({ kind: "says", text });
      assert.equal((await read()).markdown, "", text);
    }
  });

  it("a refusal is a failure and not the text of a page", async () => {
    const refusals = [
      { text: "I'm sorry, I can't assist with that." },
      { text: "", refusal: "I will not read this." },
    ];
    for (const says of refusals) {
      server.misbehave({ kind: "says", ...says });
      await assert.rejects(read(), { code: "model_failed", message: /refused/ });
    }
    server.misbehave({
      kind: "says",
      text: `I cannot say when it began. ${"The rest is long. ".repeat(7)}`.repeat(5),
    });
    assert.match((await read()).markdown, /^I cannot say/);
  });

  it("a page that is cut off is a failure; one that is repeated without end is kept once, and less trusted", async () => {
    server.misbehave({ kind: "says", text: "The beginning of", isCut: true });
    await assert.rejects(read(), { code: "model_failed", message: /no room/ });
    const loop = `Heading\n\n${"The same line.\n\n".repeat(200)}The sam`;
    server.misbehave({ kind: "says", text: loop, isCut: true });
    const { markdown, confidence } = await read();
    assert.equal(markdown, "Heading\n\nThe same line.");
    assert.ok(confidence < 0.5);
  });

  it("what a service refuses is told without the key, and not asked again", async () => {
    server.misbehave({ kind: "status", status: 400, body: `{"error":"no ${KEY}"}` });
    await assert.rejects(read(), (error: Error & { code: string }) => {
      assert.equal(error.code, "invalid_input");
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
    assert.equal(server.requests.length, 1);
  });
});

describe("what a vision model says", () => {
  const read = (text: string) => transcriptOf(text, { isCut: false }).markdown;

  it("is taken out of its fence and apart from its thoughts", () => {
    assert.equal(read("<think>hm\n</think>\n```markdown\n# A\n\nB\n```"), "# A\n\nB");
    assert.equal(read("```\ncode\n```\n\nand text"), "```\ncode\n```\n\nand text");
  });

  it("keeps what a page really repeats a few times, and ruled lines", () => {
    const form = `${"Yes / No\n".repeat(8)}${"---\n".repeat(30)}1 2 ${". ".repeat(40)}9`;
    assert.equal(read(form), form);
  });

  it("loses loops of lines, of groups of lines and of words", () => {
    assert.equal(read(`A\n${"x\ny\nz\n".repeat(40)}End`), "A\nx\ny\nz\nEnd");
    assert.equal(read(`It was ${"very ".repeat(500)}late.`), "It was very late.");
    assert.equal(read(`It was ${"so very ".repeat(500)}so`), "It was so very");
  });
});
