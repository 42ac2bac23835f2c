import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, it } from "node:test";
import { promisify } from "node:util";
import { fromStored, toStored } from "../../src/embeddings/vectors.ts";
import { DATABASES, PGVECTOR, type TestDatabase } from "../support/databases.ts";
import { findPsql } from "../support/psql.ts";
import { type Desk, MODEL, openDesk, until, vectorOf } from "./desk.ts";

const ONE = "11111111-1111-4111-8111-111111111111";
const TWO = "22222222-2222-4222-8222-222222222222";

/** As somebody else's program would write: PostgreSQL's own shell, a bare connection to the SQLite file. */
async function writeFromOutside(test: TestDatabase, sql: string): Promise<void> {
  if (test.database.dialect.name === "sqlite") {
    const bare = new DatabaseSync(join(test.folder, "quarry.db"));
    bare.exec(sql);
    bare.close();
  } else await promisify(execFile)(findPsql(), ["-v", "ON_ERROR_STOP=1", "-qc", sql, test.url]);
}

const md5 = (text: string) => createHash("md5").update(text).digest("hex");

for (const { name, open } of [...DATABASES, PGVECTOR]) {
  describe(`rules on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    before(async () => {
      test = await open();
    });
    after(() => test.close());
    beforeEach(async () => {
      for (const table of ["rules", "embedding_jobs", "embedding_job_failures"])
        await test.database.query(`delete from ${table}`);
      desk = await openDesk(test);
    });

    const jobs = () =>
      desk.query(
        "select rule_id, input_text, text_hash, status, priority, embedding_model from embedding_jobs order by created_at, priority",
      );
    const allDone = async () =>
      (await desk.query("select 1 from embedding_jobs where status <> 'completed'")).length === 0;
    const embeddingOf = async (id: string) => {
      const [row] = await desk.query(`select embedding from rules where id = '${id}'`);
      return fromStored(row!.embedding);
    };
    const work = async () => {
      const crew = await desk.work();
      await until(allDone);
      await crew.stop();
    };

    it("make their jobs when others write them, in the design's words", async () => {
      await writeFromOutside(
        test,
        `insert into rules (id, rule_id, title, guidance, rationale, priority) values
          ('${ONE}', 'R1', 'Name things', 'Use nouns.', 'They last.', 'critical'),
          ('${TWO}', 'R2', 'Be brief', 'Say it once.', null, 'medium')`,
      );
      const made = await jobs();
      assert.deepEqual(
        made
          .map((job) => [job.rule_id, job.input_text, job.status, job.priority, job.embedding_model])
          .toSorted(),
        [
          [ONE, "Name things Use nouns. They last.", "pending", "urgent", MODEL],
          [TWO, "Be brief Say it once. ", "pending", "normal", MODEL],
        ],
      );
      if (test.database.dialect.name === "postgres")
        for (const job of made) assert.equal(job.text_hash, md5(String(job.input_text)));
      await work();
      for (const job of await jobs()) assert.equal(job.text_hash, md5(String(job.input_text)));
      assert.deepEqual(await embeddingOf(ONE), vectorOf("Name things Use nouns. They last."));
      assert.deepEqual(await embeddingOf(TWO), vectorOf("Be brief Say it once. "));
    });

    it("map their priority as the design says", async () => {
      for (const [index, [priority, expected]] of [
        ["critical", "urgent"],
        ["high", "high"],
        ["medium", "normal"],
        ["low", "normal"],
        ["whatever", "normal"],
      ].entries()) {
        await desk.query(
          `insert into rules (rule_id, title, guidance, priority) values ('R${index}', 'T${index}', 'G', '${priority}')`,
        );
        const [job] = await desk.query(
          `select priority from embedding_jobs where input_text = 'T${index} G '`,
        );
        assert.equal(job!.priority, expected);
      }
    });

    it("make a new job only when they say something else, and take back what waits", async () => {
      await desk.query(`insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'A', 'B')`);
      await desk.query(`update rules set priority = 'high', title = 'A' where id = '${ONE}'`);
      assert.deepEqual(
        (await jobs()).map((job) => job.input_text),
        ["A B "],
      );
      await desk.query(`update rules set guidance = 'C' where id = '${ONE}'`);
      assert.deepEqual(
        (await jobs()).map((job) => job.input_text),
        ["A C "],
      );
      await work();
      await desk.query(`update rules set guidance = 'D' where id = '${ONE}'`);
      // Until the new vector is there, the old one serves.
      assert.deepEqual(await embeddingOf(ONE), vectorOf("A C "));
      await work();
      assert.deepEqual(await embeddingOf(ONE), vectorOf("A D "));
    });

    it("that change while their job runs keep the vector of what they say now", async () => {
      const started = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      desk.before = async (texts) => {
        if (!texts.includes("old text ")) return;
        started.resolve();
        await goOn.promise;
      };
      await desk.query(
        `insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'old', 'text')`,
      );
      const crew = await desk.work();
      await started.promise;
      await desk.query(`update rules set title = 'new' where id = '${ONE}'`);
      await until(async () => (await embeddingOf(ONE)) !== undefined);
      goOn.resolve();
      await until(allDone);
      await crew.stop();
      assert.equal((await jobs()).length, 2);
      assert.deepEqual(await embeddingOf(ONE), vectorOf("new text "));
    });

    it("that say the same share one vector", async () => {
      await desk.query(
        `insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'same', 'text'), ('${TWO}', 'R2', 'same', 'text')`,
      );
      await work();
      assert.deepEqual(
        [await embeddingOf(ONE), await embeddingOf(TWO)],
        [vectorOf("same text "), vectorOf("same text ")],
      );
      assert.deepEqual(desk.calls, [["same text "]]);
      const [paid] = await desk.query("select sum(tokens_used) as tokens from embedding_jobs");
      assert.equal(Number(paid!.tokens), 10);
    });

    it("that say what was embedded before need no worker where the database can tell", async () => {
      if (test.database.dialect.name === "sqlite") return;
      await desk.query(
        `insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'old', 'hat')`,
      );
      await work();
      await writeFromOutside(
        test,
        `insert into rules (id, rule_id, title, guidance) values ('${TWO}', 'R2', 'old', 'hat')`,
      );
      assert.deepEqual(await embeddingOf(TWO), vectorOf("old hat "));
      const [second] = await desk.query(
        `select status, tokens_used, embedding_dimensions from embedding_jobs where rule_id = '${TWO}'`,
      );
      assert.deepEqual(second, { status: "completed", tokens_used: 0, embedding_dimensions: 8 });
    });

    it("that change leave other jobs made for them alone", async () => {
      await desk.query(`insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'A', 'B')`);
      const asked = await desk.jobs.create({ input_text: "a summary of it", rule_id: ONE });
      await desk.query(`update rules set guidance = 'C' where id = '${ONE}'`);
      assert.deepEqual((await jobs()).map((job) => job.input_text).toSorted(), ["A C ", "a summary of it"]);
      assert.equal((await desk.jobs.read(asked.id)).status, "pending");
    });

    it("are served after somebody else has completed a job in the design's own words", async () => {
      await desk.query(`insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'A', 'B')`);
      const stored = toStored(vectorOf("by hand"), desk.jobs.vectorType);
      await desk.query(
        `update embedding_jobs set status = 'completed', completed_at = ${test.database.dialect.mark(1)}, embedding_vector = ${test.database.dialect.mark(2)}, embedding_dimensions = 8`,
        [new Date().toISOString(), stored],
      );
      assert.deepEqual(await embeddingOf(ONE), vectorOf("by hand"));
      assert.deepEqual(await desk.query("select id from embedding_jobs where has_turn"), []);
    });

    /** PostgreSQL takes the branches of a case for texts. */
    const cast = (value: string) =>
      test.database.dialect.name === "postgres" ? `${value}::${desk.jobs.vectorType}` : value;

    it("of several texts that one statement completes get the vector of their own", async () => {
      const { mark } = test.database.dialect;
      const made = await desk.jobs.createMany(["A B ", "C D "].map((input_text) => ({ input_text })));
      for (const [id, title, guidance] of [
        [ONE, "A", "B"],
        [TWO, "C", "D"],
      ])
        await desk.query(
          `insert into rules (id, rule_id, title, guidance) values ('${id}', '${title}', '${title}', '${guidance}')`,
        );
      // A job that SQLite's own trigger made gets its hash from whoever takes it.
      for (const { text_hash, input_text } of made)
        await desk.query(
          `update embedding_jobs set text_hash = ${mark(1)}, has_turn = false where input_text = ${mark(2)} and rule_id is not null`,
          [text_hash, input_text],
        );
      const [first, second] = made.map(({ input_text }) =>
        toStored(vectorOf(input_text), desk.jobs.vectorType),
      );
      await desk.query(
        `update embedding_jobs set status = 'completed', completed_at = ${mark(1)}, embedding_vector = case when input_text = 'A B ' then ${cast(mark(2))} else ${cast(mark(3))} end, embedding_dimensions = 8 where rule_id is null`,
        [new Date().toISOString(), first, second],
      );
      assert.deepEqual(new Set((await jobs()).map(({ status }) => status)), new Set(["completed"]));
      assert.deepEqual(await embeddingOf(ONE), vectorOf("A B "));
      assert.deepEqual(await embeddingOf(TWO), vectorOf("C D "));
    });

    it("that are deleted take their jobs with them", async () => {
      await desk.query(`insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'A', 'B')`);
      await desk.query(`delete from rules where id = '${ONE}'`);
      assert.deepEqual(await jobs(), []);
    });

    it("get the vector of a job that the API made for them, if it is of their text", async () => {
      await desk.query(`insert into rules (id, rule_id, title, guidance) values ('${ONE}', 'R1', 'A', 'B')`);
      await work();
      const { id } = await desk.jobs.create({ input_text: "something else", rule_id: ONE });
      await work();
      assert.equal((await desk.jobs.read(id)).status, "completed");
      assert.deepEqual(await embeddingOf(ONE), vectorOf("A B "));
      await desk.query("update rules set embedding = null, embedding_text_hash = null");
      const again = await desk.jobs.create({ input_text: "A B ", rule_id: ONE });
      assert.equal(again.status, "completed");
      assert.deepEqual(await embeddingOf(ONE), vectorOf("A B "));
    });

    it("the table refuses what no job may be", async () => {
      const wrong = [
        "insert into embedding_jobs (input_text, text_hash, status) values ('a', 'b', 'completed')",
        "insert into embedding_jobs (input_text, text_hash, attempts) values ('a', 'b', 4)",
        "insert into embedding_jobs (input_text, text_hash, attempts) values ('a', 'b', -1)",
        "insert into embedding_jobs (input_text, text_hash, status) values ('a', 'b', 'sleeping')",
        "insert into embedding_jobs (input_text, text_hash, priority) values ('a', 'b', 'asap')",
        `insert into embedding_jobs (input_text, text_hash, rule_id) values ('a', 'b', '${TWO}')`,
        "insert into embedding_jobs (input_text) values ('a')",
      ];
      for (const sql of wrong)
        await assert.rejects(desk.query(sql), (error: { code?: string }) =>
          ["constraint_violated", "invalid_input"].includes(error.code ?? ""),
        );
    });
  });
}
