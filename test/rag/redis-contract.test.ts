import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, beforeEach, describe, it } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import {
  Crew,
  createWorker,
  defineLane,
  done,
  failed,
  isQuarryError,
  prepareQueue,
  retry,
} from "../../src/index.ts";
import { MESSAGE_BYTES_MAX } from "../../src/rag/message.ts";
import { type DeadLetter, ragQueue } from "../../src/rag/queue.ts";
import { openRedisQueue } from "../../src/rag/redis-queue.ts";
import { cutLine } from "../support/cut-line.ts";
import { DATABASES } from "../support/databases.ts";
import { freshRedis } from "../support/redis.ts";
import { aMessage, LEASE_MS, openPlace, type Place } from "./places.ts";

const run = promisify(execFile);

/** Speaks to Redis with nothing but a socket, as a producer in any language may. */
const PYTHON_PRODUCER = `
import json, secrets, socket, sys, time
from datetime import datetime
host, port, db, rag_id = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
def command(*words):
    parts = [b"*%d\\r\\n" % len(words)]
    for word in words:
        data = word.encode()
        parts.append(b"$%d\\r\\n%s\\r\\n" % (len(data), data))
    line.sendall(b"".join(parts))
    return answers.readline()
line = socket.create_connection((host, port))
answers = line.makefile("rb")
command("SELECT", db)
job_id = f"rag-{rag_id}-{int(time.time())}-{secrets.token_hex(4)}"
message = {
    "job_id": job_id, "rag_id": rag_id, "source_path": f"/data/{rag_id}/incoming/größe.pdf", "source_type": "pdf",
    "filename": "größe.pdf", "submitted_at": datetime.utcnow().isoformat() + "Z", "producer": {"language": "python"},
}
command("HSET", f"rag:ingest:job:{job_id}", "status", "submitted", "submitted_at", message["submitted_at"])
command("LPUSH", "rag:ingest:queue", json.dumps(message))
print(job_id)
`;

/** The connection is made again by itself, a moment later. */
async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries === 200 || !isQuarryError(error, "redis_unavailable")) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

describe("the contract as other programs see it", () => {
  let place: Place;
  const store = () => place.queue.store;
  const redis = () => place.redis!;
  const claim = (limit = 10, worker = "w1") => store().claim({ worker, limit });
  const hash = async (id: string) =>
    (await redis().command("HGETALL", `rag:ingest:job:${id}`)) as Record<string, string>;
  /** Every dead letter, newest first. */
  const all = async () => {
    const found: DeadLetter[] = [];
    for (let after: string | undefined; ; ) {
      const { letters, next } = await place.queue.deadLetters({ after });
      found.push(...letters);
      if (next === undefined) return found;
      after = next;
    }
  };
  const target = () => {
    const url = new URL(redis().url);
    return { host: url.hostname, port: url.port, db: url.pathname.slice(1) };
  };

  before(async () => {
    place = await openPlace("sqlite", await freshRedis());
  });
  after(() => place.close());
  beforeEach(async () => {
    await place.reset();
    // Redis knows the ledger, as it does while nothing is wrong.
    await store().repair();
  });

  it("a job that redis-cli pushed is taken", async () => {
    const { host, port, db } = target();
    const message = aMessage(place, { source_path: "/data/it's.pdf" });
    await run("redis-cli", [
      "-h",
      host,
      "-p",
      port,
      "-n",
      db,
      "LPUSH",
      "rag:ingest:queue",
      JSON.stringify(message),
    ]);
    const [one] = await claim();
    assert.equal(one!.key, message.job_id);
    const { stdout } = await run("redis-cli", [
      "-h",
      host,
      "-p",
      port,
      "-n",
      db,
      "HGET",
      `rag:ingest:job:${message.job_id}`,
      "status",
    ]);
    assert.equal(stdout.trim(), "processing");
  });

  it("a job that Python pushed is taken, with microseconds and fields of its own", async () => {
    const { host, port, db } = target();
    const { stdout } = await run("python3", [
      "-W",
      "ignore",
      "-c",
      PYTHON_PRODUCER,
      host,
      port,
      db,
      "policies_rag",
    ]);
    const id = stdout.trim();
    assert.equal((await place.queue.read(id))!.status, "submitted");
    const [one] = await claim();
    assert.equal(one!.key, id);
    assert.equal(one!.row.job.filename, "größe.pdf");
    assert.match(one!.row.job.submitted_at, /\.\d{6}Z$/);
    await store().settle([{ claim: one!, outcome: done() }]);
    assert.deepEqual([(await hash(id)).status, (await hash(id)).rag_id], ["done", "policies_rag"]);
  });

  it("the hash has every field of the contract, from the claim to the end", async () => {
    const message = aMessage(place);
    await place.push(JSON.stringify(message));
    const [one] = await claim();
    const fields = [
      ...[
        "job_id",
        "rag_id",
        "filename",
        "status",
        "submitted_at",
        "started_at",
        "completed_at",
        "duration_seconds",
      ],
      ...["chunks_created", "embeddings_generated", "tokens_used", "error", "error_type", "retry_count"],
    ];
    const running = await hash(message.job_id);
    for (const field of fields) assert.notEqual(running[field], undefined, field);
    assert.deepEqual(
      [running.status, running.started_at],
      ["processing", new Date(place.clock.now()).toISOString()],
    );
    await place.queue.report(one!, { chunks_created: 21, embeddings_generated: 21, tokens_used: 5_432 });
    assert.equal((await hash(message.job_id)).chunks_created, "21");
    place.clock.advance(25_000);
    await store().settle([{ claim: one!, outcome: done() }]);
    const ended = await hash(message.job_id);
    assert.deepEqual(
      [ended.status, ended.duration_seconds, ended.tokens_used, ended.error, ended.completed_at],
      ["done", "25", "5432", "", new Date(place.clock.now()).toISOString()],
    );
  });

  it("finished jobs expire after seven days, open ones never", async () => {
    const ids: string[] = [];
    for (const outcome of [done(), failed("x"), retry("x", 5_000)]) {
      const message = aMessage(place);
      await place.queue.submit(message);
      const [one] = await claim(1);
      await store().settle([{ claim: one!, outcome }]);
      ids.push(message.job_id);
    }
    const ttl = (key: string) => redis().command("TTL", key) as Promise<number>;
    for (const id of ids.slice(0, 2)) {
      for (const key of [`rag:ingest:job:${id}`, `rag:ingest:job:${id}:ttl`]) {
        const seconds = await ttl(key);
        assert.ok(seconds > 604_700 && seconds <= 604_800, `${key} expires in ${seconds} s`);
      }
    }
    assert.deepEqual(
      [await ttl(`rag:ingest:job:${ids[2]}`), await ttl(`rag:ingest:job:${ids[2]}:ttl`)],
      [-1, -2],
    );
    await place.queue.redrive({ ids: [ids[1]!] });
    assert.deepEqual(
      [await ttl(`rag:ingest:job:${ids[1]}`), await ttl(`rag:ingest:job:${ids[1]}:ttl`)],
      [-1, -2],
    );
  });

  it("what is no message goes to the dead letters as it was, with the reason, and holds nobody up", async () => {
    const good = aMessage(place);
    const bad = [
      "not JSON",
      "",
      "[]",
      "7",
      "null",
      "{}",
      '{"job_id": 7}',
      '{"job_id": "a:b"}',
      `{"job_id": "${"x".repeat(300)}"}`,
      "\u0000",
    ];
    for (const text of bad) await place.push(text);
    await place.push(JSON.stringify(good));
    assert.deepEqual(
      (await claim(1)).map(({ key }) => key),
      [good.job_id],
    );
    const { letters } = await place.queue.deadLetters();
    assert.deepEqual(
      letters.map(({ message }) => message),
      bad.toReversed(),
    );
    for (const { id, job_id, reason, failed_at } of letters) {
      assert.match(id, /^message-[0-9a-f]{16}$/);
      assert.equal(job_id, null);
      assert.match(reason, /^malformed message: (it is not JSON|it is no object|job_id: )/);
      assert.match(failed_at, /Z$/);
    }
    assert.equal(new Set(letters.map(({ id }) => id)).size, bad.length);
  });

  it("a message that is too long goes to the dead letters, cut", async () => {
    const message = aMessage(place, { filename: "x".repeat(MESSAGE_BYTES_MAX) });
    await place.push(JSON.stringify(message));
    assert.deepEqual(await claim(), []);
    const [letter] = (await place.queue.deadLetters()).letters;
    assert.match(letter!.reason, /more than 65536 bytes/);
    assert.equal(letter!.message.length, MESSAGE_BYTES_MAX);
  });

  it("thousands of malformed messages are got out of the way by one claim", async () => {
    for (let n = 0; n < 3; n++)
      await redis().command(
        "LPUSH",
        "rag:ingest:queue",
        ...Array.from({ length: 700 }, (_, i) => `bad ${n} ${i}`),
      );
    const good = aMessage(place);
    await place.push(JSON.stringify(good));
    assert.equal((await claim(5)).length, 1);
    assert.equal((await place.queue.counts()).deadLetters, 2_100);
  });

  it("a job that was pushed twice runs once, whether it waits, runs, waits for a retry or is done", async () => {
    const text = JSON.stringify(aMessage(place));
    await place.push(text);
    await place.push(text);
    const [one, ...none] = await claim();
    assert.deepEqual(none, []);
    await place.push(text);
    assert.deepEqual(await claim(), []);
    await store().settle([{ claim: one!, outcome: retry("later", 5_000) }]);
    await place.push(text);
    assert.deepEqual(await claim(), []);
    place.clock.advance(5_000);
    assert.equal(await store().promoteDelayed(), 1);
    const [two] = await claim();
    await store().settle([{ claim: two!, outcome: done() }]);
    await place.push(text);
    assert.deepEqual(await claim(), []);
    assert.deepEqual(await place.whereabouts(one!.row.job.job_id), ["done"]);
  });

  it("a job that failed and is pushed again is run anew", async () => {
    const text = JSON.stringify(aMessage(place));
    await place.push(text);
    await store().settle([{ claim: (await claim())[0]!, outcome: failed("no") }]);
    await place.push(text);
    const [again] = await claim();
    assert.equal(again!.attempt, 1);
    const { status, failed_at, error } = await hash(String(again!.key));
    assert.deepEqual([status, failed_at, error], ["processing", undefined, ""]);
  });

  it("something else under the name of a job does not hold it up", async () => {
    const message = aMessage(place);
    await redis().command("SET", `rag:ingest:job:${message.job_id}`, JSON.stringify({ status: "submitted" }));
    await place.push(JSON.stringify(message));
    assert.equal((await claim())[0]!.key, message.job_id);
    assert.equal((await hash(message.job_id)).status, "processing");
  });

  for (const late of ["submitted", "queued"]) {
    it(`a producer that notes "${late}" after the job was taken does not take it away`, async () => {
      const text = JSON.stringify(aMessage(place));
      await place.push(text);
      const [one] = await claim();
      const id = String(one!.key);
      const note = () => redis().command("HSET", `rag:ingest:job:${id}`, "status", late);
      await note();
      await place.push(text);
      assert.deepEqual(await claim(), []);
      assert.equal(await place.queue.report(one!, { chunks_created: 3 }), true);
      assert.deepEqual(Object.values(await hash(id)).includes(late), false);
      await note();
      assert.deepEqual([...(await store().stillHeld([one!]))], [id]);
      assert.deepEqual([...(await store().extend([one!]))], [id]);
      assert.equal((await hash(id)).status, "processing");
      await note();
      assert.deepEqual(await store().settle([{ claim: one!, outcome: done() }]), ["done"]);
      assert.deepEqual(await place.whereabouts(id), ["done"]);
    });

    it(`a job that was noted as "${late}" while it ran is rescued from a dead worker`, async () => {
      await place.push(JSON.stringify(aMessage(place)));
      const [one] = await claim(1, "dead");
      await redis().command("HSET", `rag:ingest:job:${one!.key}`, "status", late);
      place.clock.advance(LEASE_MS + 1);
      assert.deepEqual(await store().rescueStale(), [{ key: one!.key, isFailed: false }]);
      assert.deepEqual(await store().settle([{ claim: one!, outcome: done() }]), ["lost"]);
      assert.equal((await claim())[0]!.attempt, 2);
    });
  }

  it("a job whose hash was overwritten while it ran holds up no other, and is run again", async () => {
    await place.push(JSON.stringify(aMessage(place)));
    await place.push(JSON.stringify(aMessage(place)));
    const [one, two] = await claim();
    await redis().command("SET", `rag:ingest:job:${one!.key}`, "{}");
    assert.deepEqual([...(await store().extend([one!, two!]))], [two!.key]);
    const settled = [one!, two!].map((taken) => ({ claim: taken, outcome: done() }));
    assert.deepEqual(await store().settle(settled), ["lost", "done"]);
    place.clock.advance(LEASE_MS + 1);
    assert.deepEqual(await store().rescueStale(), []);
    assert.equal(await store().repair(), 1);
    assert.equal((await claim())[0]!.key, one!.key);
  });

  it("every list is served, also that of a RAG that nobody has configured", async () => {
    const lines = ["", "high", "normal", "low", "policies_rag", "stranger_rag"];
    const messages = lines.map(() => aMessage(place));
    for (const [index, line] of lines.entries()) await place.push(JSON.stringify(messages[index]), line);
    const before = await claim();
    assert.equal(before.length, 5);
    await store().repair();
    const [stranger] = await claim();
    assert.equal(stranger!.key, messages[5]!.job_id);
    await store().settle([{ claim: stranger!, outcome: retry("x", 0) }]);
    assert.equal(await redis().command("LLEN", "rag:ingest:queue:stranger_rag"), 1);
  });

  it("malformed messages can be redriven and purged like others", async () => {
    await place.push("nonsense");
    await claim();
    assert.equal(await place.queue.redrive("all"), 1);
    assert.equal(await redis().command("LLEN", "rag:ingest:queue"), 1);
    await claim();
    const [letter] = (await place.queue.deadLetters()).letters;
    assert.equal(await place.queue.purge({ ids: [letter!.id] }), 1);
    assert.deepEqual((await place.queue.deadLetters()).letters, []);
  });

  it("what others have put among the dead letters loses none of them", async () => {
    const message = aMessage(place);
    const foreign = ["5", "some text", "[]", '{"job_id":{}}', '{"message":7}', JSON.stringify(message)];
    await redis().command("LPUSH", "rag:ingest:queue:dead-letter", ...foreign);
    await place.push("nonsense");
    await claim();
    assert.equal(await place.queue.redrive({ ids: ["none"] }), 0);
    assert.equal(await place.queue.redrive("all"), foreign.length + 1);
    const [one] = await claim();
    assert.equal(one!.key, message.job_id);
    const { letters } = await place.queue.deadLetters();
    const texts = letters.map((letter) => letter.message).toSorted();
    assert.deepEqual(texts, ["nonsense", ...foreign.slice(0, -1)].toSorted());
  });

  it("scripts are loaded again after SCRIPT FLUSH", async () => {
    await place.queue.submit(aMessage(place));
    await redis().command("SCRIPT", "FLUSH");
    const [one] = await claim();
    await redis().command("SCRIPT", "FLUSH");
    assert.deepEqual([...(await store().extend([one!]))], [one!.key]);
    await redis().command("SCRIPT", "FLUSH");
    assert.deepEqual(await store().settle([{ claim: one!, outcome: done() }]), ["done"]);
  });

  it("a worker that died between the claim and the ledger is reaped too", async () => {
    const message = aMessage(place);
    await place.push(JSON.stringify(message));
    await claim(1, "dead");
    // As if the process had ended before it wrote to the database.
    await place.database.query("delete from rag_jobs");
    place.clock.advance(LEASE_MS + 1);
    const other = place.another();
    assert.deepEqual(await other.store.rescueStale(), [{ key: message.job_id, isFailed: false }]);
    const [again] = await other.store.claim({ worker: "alive", limit: 1 });
    assert.equal(again!.attempt, 2);
  });

  it("a claim that the database cannot be told of is given back", async () => {
    const message = aMessage(place);
    await place.push(JSON.stringify(message));
    await place.database.query("alter table rag_jobs rename to rag_jobs_away");
    try {
      await assert.rejects(claim());
      assert.deepEqual(await place.whereabouts(message.job_id), ["queued"]);
    } finally {
      await place.database.query("alter table rag_jobs_away rename to rag_jobs");
    }
    const [one] = await claim();
    assert.deepEqual([one!.key, one!.attempt], [message.job_id, 1]);
  });

  it("a claim whose answer was lost is given back at the next one, and costs no try", async () => {
    const messages = [aMessage(place), aMessage(place)];
    const line = await cutLine(redis().url);
    const rag = openRedisQueue({
      ...{ url: line.url, database: place.database, queue: store().queue },
      now: () => place.clock.now(),
    });
    try {
      await place.push(JSON.stringify(messages[0]));
      const [held] = await rag.store.claim({ worker: "w1", limit: 1 });
      await place.push(JSON.stringify(messages[1]));
      const isSwallowed = line.swallowNext();
      await assert.rejects(rag.store.claim({ worker: "w1", limit: 5 }), (error) =>
        isQuarryError(error, "redis_unavailable"),
      );
      await isSwallowed;
      assert.deepEqual(await place.whereabouts(messages[1]!.job_id), ["processing"]);
      const again = await untilAnswered(() => rag.store.claim({ worker: "w1", limit: 5 }));
      assert.deepEqual(
        again.map(({ key, attempt }) => [key, attempt]),
        [[messages[1]!.job_id, 1]],
      );
      assert.deepEqual([...(await rag.store.extend([held!]))], [held!.key]);
    } finally {
      await rag.close();
      await line.close();
    }
  });

  it("a settlement whose answer was lost is recognised and not counted twice", async () => {
    const message = aMessage(place);
    await place.push(JSON.stringify(message));
    const line = await cutLine(redis().url);
    const rag = openRedisQueue({
      ...{ url: line.url, database: place.database, queue: store().queue },
      now: () => place.clock.now(),
    });
    try {
      const [one] = await rag.store.claim({ worker: "w1", limit: 1 });
      const settlements = [{ claim: one!, outcome: retry("x", 5_000) }];
      const isSwallowed = line.swallowNext();
      await assert.rejects(rag.store.settle(settlements), (error) =>
        isQuarryError(error, "redis_unavailable"),
      );
      await isSwallowed;
      const verdicts = await untilAnswered(() => rag.store.settle(settlements, { isRepeat: true }));
      assert.deepEqual(verdicts, ["retrying"]);
      assert.equal((await rag.read(message.job_id))!.retry_count, 1);
      const [row] = await place.database.query("select status, retry_count from rag_jobs");
      assert.deepEqual({ ...row }, { status: "queued", retry_count: 1 });
    } finally {
      await rag.close();
      await line.close();
    }
  });

  it("tokens go on rising in a Redis that was emptied", async () => {
    const message = aMessage(place);
    await place.queue.submit(message);
    const [zombie] = await claim(1, "zombie");
    await redis().command("FLUSHDB");
    place.clock.advance(1);
    await store().repair();
    const [owner] = await claim(1, "owner");
    assert.equal(owner!.key, message.job_id);
    assert.ok(owner!.token > zombie!.token);
    assert.deepEqual(await store().settle([{ claim: zombie!, outcome: done() }]), ["lost"]);
  });

  it("a Redis that was emptied gets every open job again, once, whoever notices", async () => {
    const open = Array.from({ length: 30 }, () => aMessage(place));
    for (const message of open) await place.queue.submit(message);
    const [finished, delayed, ...running] = await claim(5);
    await store().settle([
      { claim: finished!, outcome: done() },
      { claim: delayed!, outcome: retry("later", 5_000) },
    ]);
    // Writes down what was just decided; a moment later it would be by itself.
    await place.queue.list();
    await redis().command("FLUSHDB");
    const noticing = Array.from({ length: 4 }, () => place.another());
    const restored = await Promise.all(noticing.map(({ store: s }) => s.repair()));
    assert.equal(
      restored.reduce((sum, count) => sum + count, 0),
      29,
    );
    for (const { job_id } of open) {
      const expected = job_id === finished!.key ? [] : [job_id === delayed!.key ? "delayed" : "queued"];
      assert.deepEqual(await place.whereabouts(job_id), expected);
    }
    assert.equal((await place.queue.read(String(delayed!.key)))!.retry_count, 1);
    for (const one of running)
      assert.deepEqual(await store().settle([{ claim: one, outcome: done() }]), ["lost"]);
    assert.deepEqual(await Promise.all(noticing.map(({ store: s }) => s.repair())), [0, 0, 0, 0]);
  });

  it("a Redis that was emptied gets its dead letters again, once, whoever notices", async () => {
    const messages = Array.from({ length: 600 }, () => aMessage(place));
    for (const message of messages) await place.push(JSON.stringify(message), "high");
    for (const one of await claim(600)) {
      await place.queue.report(one, { error_type: "ParseError", error_code: "ERR_PDF_INVALID" });
      await store().settle([{ claim: one, outcome: failed(`no ${one.key}`) }]);
      place.clock.advance(1);
    }
    const before = await all();
    const [first] = before;
    const known = await hash(first!.id);
    await redis().command("FLUSHDB");
    // One that fails meanwhile is newer than those.
    const later = aMessage(place);
    await place.queue.submit(later);
    await store().settle([{ claim: (await claim(1))[0]!, outcome: failed("later") }]);
    const noticing = Array.from({ length: 4 }, () => place.another());
    await Promise.all(noticing.map(({ store: s }) => s.repair()));
    const after = await all();
    assert.equal(after[0]!.id, later.job_id);
    const byId = (letters: typeof before) => letters.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    assert.deepEqual(byId(after.slice(1)), byId(before));
    const again = await hash(first!.id);
    for (const field of ["status", "failed_at", "error", "error_code", "retry_count", "filename"])
      assert.equal(again[field], known[field], field);
    // It is in line as it was.
    assert.equal(await place.queue.redrive({ ids: [first!.id] }), 1);
    assert.equal(await redis().command("LLEN", "rag:ingest:queue:high"), 1);
    assert.equal((await claim(1))[0]!.key, first!.id);
  });

  it("a letter that outlived the status of its job is not listed twice", async () => {
    const message = aMessage(place);
    await place.queue.submit(message);
    await store().settle([{ claim: (await claim(1))[0]!, outcome: failed("no") }]);
    await place.queue.list();
    await redis().command("DEL", `rag:ingest:job:${message.job_id}`);
    await place.another().store.repair();
    assert.equal((await all()).length, 1);
  });

  it("a letter that somebody took stays taken when the status of its job is over", async () => {
    const message = aMessage(place);
    await place.queue.submit(message);
    await store().settle([{ claim: (await claim(1))[0]!, outcome: failed("no") }]);
    await place.queue.list();
    await store().repair();
    await redis().command("DEL", "rag:ingest:queue:dead-letter", `rag:ingest:job:${message.job_id}`);
    place.clock.advance(8 * 86_400_000);
    await place.another().store.repair();
    assert.equal((await all()).length, 0);
  });

  it("what others have put among the dead letters is dated when it is seen, and goes in its time", async () => {
    const { failedMs } = store().queue.retention!;
    const prune = () => store().prune({ failedOlderThanMs: failedMs! });
    await redis().command("RPUSH", "rag:ingest:queue:dead-letter", "nonsense", '{"message":"x"}', "[1]");
    await place.queue.submit(aMessage(place));
    await store().settle([{ claim: (await claim(1))[0]!, outcome: failed("ours") }]);
    place.clock.advance(1);
    assert.equal(await prune(), 0);
    const letters = await all();
    assert.deepEqual(letters.map(({ message }) => message).slice(1), ["nonsense", "x", "[1]"]);
    const now = new Date(place.clock.now()).toISOString();
    assert.deepEqual(letters.map(({ failed_at }) => failed_at).slice(1), [now, now, now]);
    place.clock.advance(failedMs! - 1);
    assert.equal(await prune(), 1);
    place.clock.advance(1);
    assert.equal(await prune(), 3);
    assert.equal(await redis().command("LLEN", "rag:ingest:queue:dead-letter"), 0);
  });

  it("a claim notices by itself that Redis was emptied", async () => {
    const message = aMessage(place);
    await place.queue.submit(message);
    await store().repair();
    await redis().command("FLUSHDB");
    let claims = await claim();
    for (let looks = 0; looks < 200 && claims.length === 0; looks++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      claims = await claim();
    }
    assert.equal(claims[0]?.key, message.job_id);
  });

  it("an older Redis is brought up to date: what is missing is queued, what is done is not run again", async () => {
    const messages = Array.from({ length: 4 }, () => aMessage(place));
    const [early, later] = [messages.slice(0, 2), messages.slice(2)];
    for (const message of early) await place.queue.submit(message);
    const old = (await redis().command("LRANGE", "rag:ingest:queue", "0", "-1")) as string[];
    for (const one of await claim(2))
      await store().settle([{ claim: one, outcome: done({ chunks_created: 9 }) }]);
    for (const message of later) await place.queue.submit(message);
    await redis().command("FLUSHDB");
    await redis().command("RPUSH", "rag:ingest:queue", ...old);
    assert.equal(await place.another().store.repair(), 2);
    assert.deepEqual((await claim()).map(({ key }) => key).sort(), later.map(({ job_id }) => job_id).sort());
    for (const { job_id } of early) {
      assert.equal((await hash(job_id)).status, "done");
      assert.equal((await place.queue.read(job_id))!.status, "done");
    }
  });

  it("a job whose list was deleted is queued again", async () => {
    const message = aMessage(place);
    await place.queue.submit(message, { priority: "high" });
    await redis().command("DEL", "rag:ingest:queue:high");
    assert.equal(await place.another().store.repair(), 1);
    assert.deepEqual(await place.whereabouts(message.job_id), ["queued"]);
  });

  it("a job whose worker's messages were deleted is queued again from the ledger", async () => {
    const message = aMessage(place);
    await place.queue.submit(message);
    await claim(1, "w1");
    await redis().command("DEL", "rag:ingest:worker:w1");
    place.clock.advance(LEASE_MS + 1);
    assert.deepEqual(await store().rescueStale(), []);
    assert.equal(await place.another().store.repair(), 1);
    assert.deepEqual(await place.whereabouts(message.job_id), ["queued"]);
  });

  it("the ledger catches up with what Redis decided while the database was away", async () => {
    const messages = [aMessage(place), aMessage(place)];
    for (const message of messages) await place.queue.submit(message);
    const claims = await claim(2);
    const before = await place.database.query("select * from rag_jobs");
    await store().settle([
      { claim: claims[0]!, outcome: done({ chunks_created: 4 }) },
      { claim: claims[1]!, outcome: failed("no") },
    ]);
    for (const row of before)
      await place.database.query("update rag_jobs set status = ?1, finished_at = null where job_id = ?2", [
        row.status,
        row.job_id,
      ]);
    assert.equal(await place.another().store.repair(), 0);
    const rows = await place.database.query(
      "select status, chunks_created, error from rag_jobs order by status",
    );
    assert.deepEqual(
      rows.map((row) => ({ ...row })),
      [
        { status: "done", chunks_created: 4, error: null },
        { status: "failed", chunks_created: 0, error: "no" },
      ],
    );
  });

  it("dates are written as everybody writes them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.date({ min: new Date("1971-01-01"), max: new Date("2400-01-01"), noInvalidDate: true }),
        async (date) => {
          await place.reset();
          const other = openRedisQueue({
            ...{ url: redis().url, database: place.database, queue: ragQueue({ staleMs: LEASE_MS }) },
            now: () => date.getTime(),
          });
          await place.push(JSON.stringify(aMessage(place)));
          const [one] = await other.store.claim({ worker: "w", limit: 1 });
          await other.close();
          assert.equal((await hash(String(one!.key))).started_at, date.toISOString());
        },
      ),
      {
        numRuns: 60,
        examples: [
          [new Date("2024-02-29T23:59:59.999Z")],
          [new Date("2100-03-01T00:00:00.000Z")],
          [new Date("2399-12-31T12:00:00.001Z")],
        ],
      },
    );
  });
});

describe("workers on Redis", () => {
  it("a push of anybody, to any list, wakes an idle lane", async () => {
    const redis = await freshRedis();
    const { database, close } = await DATABASES[0]!.open();
    const queue = ragQueue({ staleMs: LEASE_MS });
    await prepareQueue(database, queue);
    const rag = openRedisQueue({ url: redis.url, database, queue, ragIds: ["policies_rag"] });
    const seen: string[] = [];
    let onSeen = () => {};
    // A poll would come after the test's end.
    const lane = defineLane({
      queue,
      store: rag.store,
      pollMs: 600_000,
      handle: ({ key }) => {
        seen.push(String(key));
        onSeen();
      },
    });
    const crew = new Crew({
      database,
      lanes: [lane],
      heartbeatMs: 20_000,
      checkEveryMs: 600_000,
      staleMs: LEASE_MS,
      pollMs: 600_000,
    });
    await crew.start();
    try {
      for (const list of ["queue", "queue:high", "queue:low", "queue:policies_rag", "queue:stranger_rag"]) {
        const message = aMessage({ clock: { ...database.clock, advance: () => undefined } });
        const isSeen = new Promise<void>((resolve) => {
          onSeen = resolve;
        });
        await redis.command("LPUSH", `rag:ingest:${list}`, JSON.stringify(message));
        await isSeen;
        assert.equal(seen.at(-1), message.job_id);
      }
      assert.ok((await rag.counts()).lastHeartbeatMsAgo! < 5_000);
    } finally {
      await crew.stop();
      await rag.close();
      await close();
      await redis.close();
    }
  });

  it("several workers share the lists without doing anything twice", async () => {
    const place = await openPlace("sqlite", await freshRedis());
    const messages = Array.from({ length: 400 }, () => aMessage(place));
    for (const message of messages) await place.push(JSON.stringify(message));
    const runs: string[] = [];
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    const workers = Array.from({ length: 4 }, () => {
      const { store } = place.another();
      const handle = ({ key }: { key: string | number }) => {
        runs.push(String(key));
        if (runs.length === messages.length) resolve();
      };
      return createWorker({
        database: place.database,
        lanes: [defineLane({ queue: store.queue, store, concurrency: 7, handle })],
      }).start();
    });
    await isOver;
    for (const worker of workers) await worker.stop();
    assert.deepEqual(runs.sort(), messages.map(({ job_id }) => job_id).sort());
    await place.close();
  });
});
