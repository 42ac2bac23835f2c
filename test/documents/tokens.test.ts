import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Embedder } from "../../src/adapters/embed.ts";
import { openLlmEntities } from "../../src/adapters/entities/llm.ts";
import { openOpenAiLlm } from "../../src/adapters/llm/openai.ts";
import { openVisionOcr } from "../../src/adapters/ocr/vision.ts";
import { QuarryError } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import type { ChatRequest } from "../support/model-chat.ts";
import { type ModelServerOptions, startModelServer } from "../support/model-server.ts";
import { toPng } from "../support/png.ts";
import { entitiesAnswer, nothing } from "../support/reading-model.ts";
import { openPipeline, type Pipeline, until, vectorOf } from "./parts.ts";

const NONE = { ocr: 0, vector: 0, graphrag: 0 };

/** Words are its tokens. */
function embedderOf(asked: string[]): Embedder {
  const count = (text: string) => text.split(/\s+/).filter(Boolean).length;
  return {
    model: "words",
    dimensions: 32,
    tokensMax: 128,
    tokenizer: { count },
    embed: async (texts) => {
      asked.push(...texts);
      return { vectors: texts.map(vectorOf), tokens: texts.reduce((sum, text) => sum + count(text), 0) };
    },
    close: async () => undefined,
  };
}

async function add({ documents }: Pipeline, { folder }: TestDatabase, name: string, text: string) {
  const path = join(folder, name);
  await writeFile(path, text);
  return (await documents.add({ path })).id;
}

for (const { name, open } of DATABASES)
  describe(`tokens of documents on ${name}`, () => {
    const opened = async (t: { after(work: () => Promise<void>): void }, options: ModelServerOptions) => {
      const database = await open();
      const server = await startModelServer(options);
      const asked: string[] = [];
      const shared = { baseUrl: server.openAiUrl, model: "gpt-test", timeoutMs: 60_000 };
      const entities = openLlmEntities(openOpenAiLlm(shared));
      const names = { urlSetting: "QUARRY_OCR_URL", keySetting: "QUARRY_OCR_API_KEY" };
      const vision = openVisionOcr({ ...shared, ...names, threads: 1 });
      // The extractor's pictures are text; the model gets to see a drawn one.
      const ocr = {
        ...vision,
        recognise: (_: Uint8Array, signal: AbortSignal) => vision.recognise(STRIPES, signal),
      };
      const pipeline = await openPipeline(database, { embedder: embedderOf(asked), entities, ocr });
      t.after(async () => {
        await pipeline.close();
        await entities.close();
        await vision.close();
        await server.close();
        await database.close();
      });
      return { database, server, pipeline, asked };
    };
    const plainChat = (asked: ChatRequest) =>
      asked.pictures!.length > 0 ? "A scan by Bob." : entitiesAnswer(asked, nothing);

    it("are counted by phase when they are spent, and what is known costs none", async (t) => {
      const { database, server, pipeline, asked } = await opened(t, { chat: plainChat });
      const id = await add(pipeline, database, "a.txt", "Ada wrote a book.\f[scan]");
      await pipeline.drain();
      const { tokens, state } = await pipeline.documents.show(id);
      assert.equal(state, "completed");
      const words = asked.join(" ").split(/\s+/).length;
      assert.equal(tokens.vector, words);
      assert.ok(tokens.ocr > 0 && tokens.graphrag > 0);
      assert.equal(tokens.ocr + tokens.graphrag, server.answered.tokens);

      await pipeline.documents.redo(id, "ocr");
      await pipeline.drain();
      // Whoever wants a page read again pays for that; what follows from the same text is known.
      const again = { ...tokens, ocr: 2 * tokens.ocr };
      assert.deepEqual((await pipeline.documents.show(id)).tokens, again);
      const twin = await add(pipeline, database, "b.txt", "Ada wrote a book.\f[scan]");
      await pipeline.drain();
      assert.deepEqual((await pipeline.documents.show(twin)).tokens, NONE);
    });

    it("of documents in one batch are shared among them, to the last one", async (t) => {
      const { database, pipeline, asked } = await opened(t, { chat: plainChat });
      const ids = [];
      for (let number = 0; number < 5; number++)
        ids.push(
          await add(pipeline, database, `${number}.txt`, `Text of ${"one ".repeat(number * 9)}${number}.`),
        );
      await pipeline.drain();
      const spent = [];
      for (const id of ids) spent.push((await pipeline.documents.show(id)).tokens.vector);
      const words = asked.join(" ").split(/\s+/).length;
      assert.equal(
        spent.reduce((sum, count) => sum + count, 0),
        words,
      );
      assert.ok(spent.every((count) => count > 0) && spent[4]! > spent[0]!);
    });

    it("are counted once though the store was away when the vectors were made", async (t) => {
      const { database, pipeline, asked } = await opened(t, { chat: plainChat });
      const { vectors } = pipeline.parts;
      const upsert = vectors.upsert.bind(vectors);
      let isAway = true;
      vectors.upsert = async (points) => {
        if (!isAway) return upsert(points);
        isAway = false;
        // A try that counts, so that the test need not wait as long as for an outage.
        throw new QuarryError("database_failed", "the store stumbled");
      };
      const id = await add(pipeline, database, "a.txt", "Ada wrote a book.");
      await pipeline.drain();
      const { tokens, state } = await pipeline.documents.show(id);
      assert.deepEqual([state, asked.length], ["completed", 1]);
      assert.equal(tokens.vector, asked.join(" ").split(/\s+/).length);
    });

    it("a text that the model cannot read costs its own tries and not its neighbours'", async (t) => {
      const chat = (asked: ChatRequest) =>
        asked.messages[0]!.content.includes("poison") ? "never JSON" : entitiesAnswer(asked, nothing);
      const { database, server, pipeline } = await opened(t, { chat });
      const { entities } = pipeline.parts;
      const extract = entities.extract.bind(entities);
      entities.extract = async () => {
        throw new QuarryError("model_unavailable", "it is away, until all chunks wait for it");
      };
      const id = await add(
        pipeline,
        database,
        "a.txt",
        Array.from({ length: 16 }, (_, page) => (page === 5 ? "The poison." : `Page ${page} of it.`)).join(
          "\f",
        ),
      );
      const crew = await pipeline.crew();
      const delayed = "from task_queue_chunk where graphrag_run_after is not null";
      const count = async () =>
        Number((await database.database.query(`select count(*) as n ${delayed}`))[0]!.n);
      await until(async () => (await count()) === 16);
      entities.extract = extract;
      // All of them at once, and tries without the pauses between them.
      await until(async () => {
        const sql =
          "update task_queue_chunk set graphrag_run_after = null where graphrag_run_after is not null";
        await database.database.query(sql);
        return (await pipeline.documents.progress()).open === 0;
      });
      await crew.stop();
      const { state, failures } = await pipeline.documents.show(id);
      assert.equal(state, "partial");
      assert.deepEqual(
        failures.map(({ phase, pageNumber, attempts }) => [phase, pageNumber, attempts]),
        [["graphrag", 6, 3]],
      );
      assert.match(failures[0]!.error!, /gpt-test twice gave an answer of another form: it is not JSON/);
      const readings = new Map<string, number>();
      for (const { body } of server.requests)
        for (const match of JSON.stringify(body.messages).matchAll(/Page \d+ of it/g))
          readings.set(match[0], (readings.get(match[0]) ?? 0) + 1);
      const others = [...readings].filter(([, times]) => times > 1).map(([text]) => text);
      // Those of the one call that the poison was in, each until it was apart from it.
      assert.ok(others.length <= 3, others.join());
      assert.ok([...readings.values()].every((times) => times <= 5));
      const poisonous = server.requests.filter(({ body }) =>
        JSON.stringify(body.messages).includes("poison"),
      );
      // Three tries, each with its repair; the first also in company of three and of one.
      assert.equal(poisonous.length, 3 * 2 + 2 * 2);
    });
  });

const STRIPES = toPng({
  width: 80,
  height: 40,
  pixels: Uint8Array.from({ length: 80 * 40 }, (_, index) => (index % 2 ? 255 : 0)),
});
