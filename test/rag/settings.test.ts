import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { LOCAL_MODEL } from "../../src/adapters/embed/choice.ts";
import { loadSettings } from "../../src/config.ts";
import { openDatabase, openQuarry } from "../../src/index.ts";
import { checkChunking, type RagSettings } from "../../src/rag/settings.ts";

describe("settings of RAGs", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-rags-"));
    await mkdir(join(folder, "configs/client"), { recursive: true });
  });
  afterEach(() => rm(folder, { recursive: true }));

  const own = (text: string) => writeFile(join(folder, "quarry.yaml"), text);
  const contracts = (text: string) => writeFile(join(folder, "configs/client/client.yaml"), text);
  const load = (env: Record<string, string> = {}) => loadSettings({ env, folder });

  test("have defaults for all but the name", async () => {
    await own("rags:\n  policies_rag:\n");
    const sources = join(folder, "data/sources/policies_rag");
    assert.deepEqual(
      [...load().settings.rags.values()],
      [
        {
          id: "policies_rag",
          tenant: "default",
          collection: "policies_rag",
          folders: {
            sources,
            incoming: join(sources, "incoming"),
            processed: join(sources, "processed"),
            failed: join(sources, "failed"),
          },
          chunking: undefined,
        },
      ],
    );
  });

  test("come from quarry.yaml and the contract's own file, which may hold other things", async () => {
    await own("rags:\n  a: { collection: mine, chunking: { tokens: 200 } }\nmax_task_retries: 5\n");
    await contracts(
      "client: { name: ACME }\nredis: { url: 'redis://redis:6379/0', password: null, db: 0 }\nrags:\n  a: { collection: theirs }\n  b: { sources: /srv/b, tenant: acme, processed: done }\n",
    );
    const { settings, warnings, sources } = load();
    const { a, b } = Object.fromEntries(settings.rags);
    assert.deepEqual([a!.collection, a!.chunking], ["mine", { tokens: 200, overlap: 24 }]);
    assert.deepEqual([b!.tenant, b!.folders.sources], ["acme", "/srv/b"]);
    assert.deepEqual([b!.folders.processed, b!.folders.failed], [join(folder, "done"), "/srv/b/failed"]);
    assert.deepEqual([settings.redisUrl, warnings, settings.attemptsMax], ["redis://redis:6379/0", [], 5]);
    const from = sources.find(({ name }) => name === "REDIS_URL")!.from;
    assert.equal(from, "configs/client/client.yaml");
  });

  test("Redis comes from the environment, then quarry.yaml, then the contract's file", async () => {
    await contracts("redis: { url: 'redis://contract:6379' }\n");
    assert.equal(load().settings.redisUrl, "redis://contract:6379");
    await own("redis: { url: 'redis://own:6379', db: 3 }\n");
    assert.equal(load().settings.redisUrl, "redis://own:6379/3");
    assert.equal(load({ REDIS_URL: "redis://env:6379/1" }).settings.redisUrl, "redis://env:6379/1");
  });

  test("a password in a file is taken with a warning, and never shown", async () => {
    await contracts("redis: { url: 'rediss://redis:6379/0', password: 'canary@#/1', db: 2 }\n");
    const { settings, warnings, sources } = load();
    const url = new URL(settings.redisUrl!);
    assert.deepEqual(
      [decodeURIComponent(url.password), url.pathname, url.hostname],
      ["canary@#/1", "/2", "redis"],
    );
    assert.match(warnings[0]!, /client\.yaml holds the password of Redis.*REDIS_URL/);
    assert.doesNotMatch(JSON.stringify([warnings, sources]), /canary/);
    await own("redis: { url: 'redis://u:canary@h:1', db: many }\n");
    assert.throws(
      () => load(),
      (error: Error) =>
        /redis\.db in quarry\.yaml: give a whole number/.test(error.message) && !/canary/.test(error.message),
    );
  });

  test("of other programs in the contract's file are theirs; what is almost ours is told", async () => {
    await contracts("llm: { url: 'http://x' }\nredis: { url: 'redis://h', dbs: 1 }\n");
    assert.throws(
      () => load(),
      /^QuarryError: redis in configs\/client\/client\.yaml has dbs, which is no setting; did you mean db\?$/,
    );
    await contracts("llm: { url: 'http://x' }\nrag: { a: {} }\nservices: { rags: 1 }\n");
    const { settings, warnings } = load();
    assert.equal(settings.rags.size, 0);
    assert.deepEqual(warnings, [
      "configs/client/client.yaml has rag, which is not read; if it is meant for Quarry, call it rags",
    ]);
  });

  test("that make no sense are refused with their place and what they may be", async () => {
    for (const [text, message] of [
      ["rags: [a]", /rags in quarry\.yaml must name each RAG/],
      [
        "rags: { high: {} }",
        /rags\.high in quarry\.yaml: high, normal, low, dead-letter are the names of lists/,
      ],
      ["rags: { 'a/../b': {} }", /a RAG's name is 1 to 64/],
      [
        "rags: { a: { colour: red } }",
        /rags\.a in quarry\.yaml: it has colour, which is no setting; there are collection, tenant/,
      ],
      [
        "rags: { a: { colection: red } }",
        /rags\.a in quarry\.yaml: it has colection, which is no setting; did you mean collection\?$/,
      ],
      [
        "rags: { a: { chunking: { tokens: 200, overlpa: 3 } } }",
        /rags\.a in quarry\.yaml: chunking: it has overlpa, which is no setting; did you mean overlap\?$/,
      ],
      [
        "redis: { url: 'redis://h', pasword: x }",
        /^redis in quarry\.yaml has pasword, which is no setting; did you mean password\?$/,
      ],
      [
        "redis: { url: 'redis://h', cluster: true }",
        /^redis in quarry\.yaml has cluster, which is no setting; there are url, password, db$/,
      ],
      ["redsi: { url: 'redis://h' }", /quarry\.yaml has redsi, which is no setting; did you mean redis\?$/],
      ["max_task_retrys: 4", /has max_task_retrys, which is no setting; did you mean max_task_retries\?$/],
      ["colour: red", /has colour, which is no setting; there are quarry_data, database_url, .*redis, rags$/],
      ["rags: { a: { collection: '' } }", /rags\.a in quarry\.yaml: collection: use 1 to 100 letters/],
      [
        "rags: { a: { chunking: { tokens: 12 } } }",
        /rags\.a in quarry\.yaml: chunking\.tokens: give a whole number from 128/,
      ],
      ["rags: { a: { chunking: { tokens: 128, overlap: 100 } } }", /overlap may be half of tokens at most/],
      [
        "rags: { a: { sources: x }, b: { sources: x/y } }",
        /rags\.b in quarry\.yaml: sources .* of a, inside it/,
      ],
      ["redis: { url: 'http://x' }", /redis\.url in quarry\.yaml: give a URL such as redis:/],
      [
        "rags: { a: { embedding_model: other } }",
        /^rags\.a in quarry\.yaml: embedding_model is "other", but "all-MiniLM-L6-v2-q8" is in use, which all RAGs share; remove embedding_model from a, or set QUARRY_EMBEDDER=ollama:other \(or openai:other, wherever it is served\) and run quarry reindex, which embeds everything anew$/,
      ],
      [
        `quarry_embedder: 'openai:big'\nrags: { a: { embedding_model: ${LOCAL_MODEL} } }`,
        /"big" is in use, .*or set QUARRY_EMBEDDER=local and run quarry reindex/,
      ],
    ] as const) {
      await own(text);
      assert.throws(() => load(), { code: "invalid_input", message }, text);
    }
    await own(`rags: { a: { embedding_model: ${LOCAL_MODEL}, chunking: { tokens: 300 } } }`);
    const { rags } = load().settings;
    assert.throws(() => checkChunking(rags, 256), {
      code: "invalid_input",
      message: /chunking\.tokens is 300.* reads 256/,
    });
    checkChunking(rags, 300);
  });
});

describe("a RAG's chunking", () => {
  test("is how its documents are cut, by whoever cuts them, also when they are done again", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-chunking-"));
    const rags = { small: { chunking: { tokens: 128, overlap: 40 } }, usual: {} };
    const open = (given: RagSettings) =>
      openQuarry({ dataFolder: join(folder, ".quarry"), rags: given, pollMs: 100, logLevel: "silent" });
    const sourced = Object.fromEntries(
      Object.entries(rags).map(([id, rag]) => [id, { ...rag, sources: join(folder, id) }]),
    );
    const sentence = (n: number) => `The quarry of the year ${1800 + n} gave granite for the bridge.`;
    const paragraph = (n: number) => Array.from({ length: 5 }, (_, m) => sentence(5 * n + m)).join(" ");
    const text = Array.from({ length: 18 }, (_, n) => paragraph(n)).join("\n\n");
    await writeFile(join(folder, "a.txt"), text);
    const submitter = await open(sourced);
    const ids: Record<string, string> = {};
    for (const id of Object.keys(rags))
      ids[id] = (await submitter.rag.submitFile(join(folder, "a.txt"), { rag_id: id })).job_id;
    const crew = await submitter.work();
    const documents: Record<string, string> = {};
    for (const [id, job] of Object.entries(ids))
      documents[id] = (await submitter.rag.finished(job, AbortSignal.timeout(60_000))).document_id!;
    await crew.stop();
    await submitter.close();

    const chunksOf = async (id: string) => {
      const database = openDatabase(join(folder, ".quarry/quarry.db"));
      const rows = await database
        .query(
          `select token_count, overlap from task_queue_chunk where document_id = '${documents[id]}' order by chunk_index`,
        )
        .finally(() => database.close());
      return rows.map(
        ({ token_count: tokens, overlap }) => [Number(tokens), String(overlap).length] as const,
      );
    };
    const [small, usual] = [await chunksOf("small"), await chunksOf("usual")];
    const most = (chunks: typeof small) => Math.max(...chunks.map(([tokens]) => tokens));
    assert.ok(most(small) <= 128 && most(small) > 80, String(most(small)));
    assert.ok(most(usual) > 128, String(most(usual)));
    const overlap = (chunks: typeof small) => Math.max(...chunks.map(([, length]) => length));
    assert.ok(
      overlap(small) > overlap(usual) && overlap(small) > 2 * sentence(0).length,
      `${overlap(small)}`,
    );

    // A process that knows nothing of the RAG cuts it alike: the document itself says how.
    const other = await open({});
    await other.documents.redo(documents.small!, "vector");
    await other.work();
    while ((await other.documents.progress([documents.small!])).open > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await other.close();
    assert.deepEqual(await chunksOf("small"), small);
    await rm(folder, { recursive: true });
  });
});
