import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import {
  createJanitor,
  createWorker,
  defineLane,
  done,
  isQuarryError,
  prepareQueue,
  systemClock,
} from "../../src/index.ts";
import { hideSecrets } from "../../src/log.ts";
import { RagJobs } from "../../src/rag/jobs.ts";
import { newMessage } from "../../src/rag/message.ts";
import { type RagQueue, ragQueue } from "../../src/rag/queue.ts";
import { openRedisQueue } from "../../src/rag/redis-queue.ts";
import { readRags } from "../../src/rag/settings.ts";
import { DATABASES } from "../support/databases.ts";
import { redisAt } from "../support/redis.ts";
import { type RedisOptions, startRedis } from "../support/services.ts";

const run = promisify(execFile);
const ALWAYS = ["--appendfsync", "always"];

/** A Redis of the test's own, a database beside it, and a queue over both. */
async function openOwn(options: RedisOptions = {}, staleMs = 60_000) {
  const server = await startRedis(options);
  const opened = await DATABASES[0]!.open();
  const { database } = opened;
  const queue = ragQueue({ staleMs });
  await prepareQueue(database, queue);
  const queues: RagQueue[] = [];
  const open = (url = server.url) => {
    const one = openRedisQueue({ url, database, queue });
    queues.push(one);
    return one;
  };
  const work = (rag: RagQueue, handle: (key: string) => Promise<unknown> | unknown) => {
    const lane = defineLane({
      ...{ queue, store: rag.store, concurrency: 4, pollMs: 50 },
      handle: async ({ key }) => {
        await handle(String(key));
        return done();
      },
    });
    return createWorker({ database, lanes: [lane], graceMs: 1_000 }).start();
  };
  const close = async () => {
    for (const one of queues) await one.close();
    await opened.close();
    await server.stop();
  };
  return { server, database, url: opened.url, queue, open, work, close };
}

function message() {
  const file = { source_path: "/data/a.pdf", source_type: "pdf", filename: "a.pdf" };
  return newMessage({ rag_id: "policies_rag", ...file }, systemClock);
}

async function submitted(rag: RagQueue, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const job = message();
    await rag.submit(job);
    ids.push(job.job_id);
  }
  return ids;
}

async function until(what: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
  for (let looks = 0; looks < 1_500; looks++) {
    if (await isTrue()) return;
    await pause(20);
  }
  assert.fail(`never came true: ${what}`);
}

const allDone = async (rag: RagQueue, ids: readonly string[]) => {
  const jobs = await Promise.all(ids.map((id) => rag.read(id).catch(() => undefined)));
  return jobs.every((job) => job?.status === "done");
};

describe("a Redis that goes away", () => {
  it("a lane goes on by itself when it is back, and no job is lost or run in vain", async () => {
    const own = await openOwn({ args: ALWAYS });
    after(own.close);
    const rag = own.open();
    const ids = await submitted(rag, 120);
    const runs: string[] = [];
    const worker = own.work(rag, async (key) => {
      runs.push(key);
      await pause(2);
    });
    await until("some have run", () => runs.length > 10);
    await own.server.quit();
    await assert.rejects(rag.counts(), (error) => isQuarryError(error, "redis_unavailable"));
    await own.server.launch();
    await until("all are done", async () => (await rag.counts().catch(() => ({ length: 1 }))).length === 0);
    await worker.stop();
    assert.equal(await allDone(rag, ids), true);
    // What was being handled when Redis went was settled when it came back.
    assert.equal(runs.length, ids.length);
  });

  it("one that was killed with AOF has every job that was accepted", async () => {
    const own = await openOwn({ args: ALWAYS, quitSignal: "SIGKILL" });
    after(own.close);
    const rag = own.open();
    const ids = await submitted(rag, 100);
    const [first] = await rag.store.claim({ worker: "w", limit: 1 });
    const more = Array.from({ length: 50 }, message);
    const submitting = Promise.allSettled(more.map((job) => rag.submit(job)));
    await own.server.quit();
    const accepted = (await submitting).flatMap((result, n) =>
      result.status === "fulfilled" ? [more[n]!.job_id] : [],
    );
    await own.server.launch();
    const redis = await redisAt(own.server.url);
    for (const id of [...ids, ...accepted])
      assert.notEqual(await redis.command("HGET", `rag:ingest:job:${id}`, "status"), null, id);
    await redis.close();
    await until("the claim can be settled", async () =>
      rag.store.settle([{ claim: first!, outcome: done() }], { isRepeat: true }).then(
        ([verdict]) => verdict === "done",
        () => false,
      ),
    );
    const worker = own.work(rag, () => undefined);
    await until("all are done", () => allDone(rag, [...ids, ...accepted]));
    await worker.stop();
  });

  it("one that came back empty is noticed by those at work, and every open job is done", async () => {
    const own = await openOwn({ args: ["--appendonly", "no"] });
    after(own.close);
    const queues = [own.open(), own.open(), own.open()];
    const ids = await submitted(queues[0]!, 150);
    const runs = new Set<string>();
    const workers = queues.map((rag) =>
      own.work(rag, async (key) => {
        runs.add(key);
        await pause(3);
      }),
    );
    await until("some have run", () => runs.size > 20);
    await own.server.restart();
    await until("all are done", () => allDone(queues[0]!, ids));
    for (const worker of workers) await worker.stop();
    const redis = await redisAt(own.server.url);
    assert.equal(await redis.command("LLEN", "rag:ingest:queue"), 0);
    assert.equal(await redis.command("ZCARD", "rag:ingest:leases"), 0);
    await redis.close();
  });

  it("one without memory stops claims, not settlements, and loses nothing", async () => {
    const own = await openOwn();
    after(own.close);
    const rag = own.open();
    const ids = await submitted(rag, 20);
    const claims = await rag.store.claim({ worker: "w", limit: 3 });
    const redis = await redisAt(own.server.url);
    after(redis.close);
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    const isFull = (error: unknown) =>
      isQuarryError(error, "redis_unavailable") && /out of memory/.test(error.message);
    await assert.rejects(rag.store.claim({ worker: "w", limit: 3 }), isFull);
    await assert.rejects(rag.submit(message()), isFull);
    assert.equal((await rag.store.extend(claims)).size, 3);
    const settlements = claims.map((claim) => ({ claim, outcome: done() }));
    assert.deepEqual(await rag.store.settle(settlements), ["done", "done", "done"]);
    assert.equal(await redis.command("LLEN", "rag:ingest:queue"), 17);
    const worker = own.work(rag, () => undefined);
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await until("all are done", () => allDone(rag, ids));
    await worker.stop();
  });
});

describe("a job that Redis does not take", () => {
  it("is kept, and so is the copy of its file", async () => {
    const own = await openOwn();
    after(own.close);
    const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
    after(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, "a.txt"), "a");
    const queue = own.open();
    const rags = readRags({ policies_rag: {} }, { folder, where: "the test", model: "test" });
    const jobs = new RagJobs({ queue, rags, clock: systemClock });
    const submit = () => jobs.submitFile(join(folder, "a.txt"), { rag_id: "policies_rag" });
    const redis = await redisAt(own.server.url);
    after(redis.close);
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await assert.rejects(submit(), /is kept in the database and queued as soon as Redis takes it/);
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await queue.store.repair();
    const [claim] = await queue.store.claim({ worker: "w", limit: 10 });
    assert.equal(await readFile(claim!.row.job.source_path, "utf8"), "a");
  });
});

describe("a worker that is killed", () => {
  it("loses nothing: whoever comes next has its jobs, one try later", async () => {
    const own = await openOwn({ args: ALWAYS }, 400);
    after(own.close);
    const rag = own.open();
    const ids = await submitted(rag, 8);
    const args = [join(import.meta.dirname, "redis-worker.ts"), own.server.url, own.url, "400"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = (await once(child.stdout, "data")) as [Buffer];
    assert.deepEqual(String(said).trim().split(" "), ids);
    child.kill("SIGKILL");
    await once(child, "exit");
    const janitors = [own.open(), own.open()].map(({ store }) =>
      createJanitor({ database: own.database, queues: [store], everyMs: 50 }).start(),
    );
    const worker = own.work(rag, () => undefined);
    await until("all are done", () => allDone(rag, ids));
    await worker.stop();
    for (const janitor of janitors) await janitor.stop();
    for (const id of ids) assert.equal((await rag.read(id))!.retry_count, 1);
  });
});

describe("a Redis that cannot be used", () => {
  const refusal = async (url: string) => {
    const opened = await DATABASES[0]!.open();
    const queue = ragQueue({ staleMs: 60_000 });
    const rag = openRedisQueue({ url, database: opened.database, queue });
    try {
      await rag.submit(message());
      return "none";
    } catch (error) {
      assert.ok(isQuarryError(error, "redis_unavailable"), String(error));
      assert.equal(error.exitCode, 3);
      assert.deepEqual((await rag.list()).jobs, []);
      return error.message;
    } finally {
      await rag.close();
      await opened.close();
    }
  };

  it("is named, with what to do, and no password", async () => {
    assert.match(
      await refusal("redis://127.0.0.1:1/0"),
      /127\.0\.0\.1:1\/0 cannot be reached: .*ECONNREFUSED.* REDIS_URL/,
    );
    assert.match(await refusal("redis://no-such-host.invalid"), /cannot be reached: .*REDIS_URL/);
    const server = await startRedis({ password: "s3cret" });
    after(server.stop);
    const locked = new URL(server.url);
    locked.password = "";
    const wanted = await refusal(locked.href);
    assert.match(wanted, /refuses the password, or wants one; .*REDIS_URL/);
    assert.equal(hideSecrets(wanted), wanted);
    locked.password = "wr0ng";
    const said = await refusal(locked.href);
    assert.match(said, /refuses the password/);
    assert.doesNotMatch(said, /wr0ng|s3cret/);
    assert.match(await refusal(`${server.url}/99`), /no such database/);
    assert.equal(await refusal(`${server.url}/3`), "none");
    const redis = await redisAt(`${server.url}/3`);
    assert.equal(await redis.command("LLEN", "rag:ingest:queue"), 1);
    await redis.close();
  });

  it("rediss:// speaks TLS, and only to a server whose certificate is trusted", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
    after(() => rm(folder, { recursive: true, force: true }));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    await run("openssl", [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-keyout",
      key,
      "-out",
      cert,
      ...subject,
    ]);
    const tlsPort = 20_000 + Math.floor(Math.random() * 20_000);
    const tls = [
      "--tls-cert-file",
      cert,
      "--tls-key-file",
      key,
      "--tls-ca-cert-file",
      cert,
      "--tls-auth-clients",
      "no",
    ];
    const server = await startRedis({ args: ["--tls-port", String(tlsPort), ...tls] });
    after(server.stop);
    assert.match(await refusal(`rediss://127.0.0.1:${tlsPort}`), /cannot be reached: .*self.signed/i);
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, await readFile(cert, "utf8")]);
    try {
      assert.equal(await refusal(`rediss://127.0.0.1:${tlsPort}`), "none");
    } finally {
      setDefaultCACertificates(before);
    }
  });

  it("ends a command with exit code 3", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
    after(() => rm(folder, { recursive: true, force: true }));
    const env = { ...process.env, REDIS_URL: "redis://127.0.0.1:1", QUARRY_DATA: join(folder, "data") };
    const bin = join(import.meta.dirname, "../../bin/quarry.js");
    // Whatever needs no Redis works without it.
    await run(process.execPath, [bin, "migrate"], { env, cwd: folder });
    const asked = ["rag", "status", "--job", "rag-a-1-00000000"];
    const ended = run(process.execPath, [bin, ...asked], { env, cwd: folder });
    await assert.rejects(ended, (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 3, error.stderr);
      assert.match(error.stderr, /Redis at redis:\/\/127\.0\.0\.1:1 cannot be reached/);
      return true;
    });
  });
});
