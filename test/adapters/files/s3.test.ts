import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, globSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { removeLeftCopies } from "../../../src/adapters/files/local-copies.ts";
import { openS3Files, PART_BYTES, type S3Settings } from "../../../src/adapters/files/s3.ts";
import type { FileStore } from "../../../src/adapters/files.ts";
import { systemClock } from "../../../src/clock.ts";
import { type FaultyLine, faultyLine } from "../../support/faulty-line.ts";
import { freshBucket, type TestBucket } from "../../support/s3.ts";
import { chunks, filesConformance } from "./conformance.ts";

const PREFIX = "some/prefix";
const SECRET = "canary";

filesConformance("in a bucket", async () => {
  const bucket = await freshBucket();
  const cacheFolder = await mkdtemp(join(tmpdir(), "quarry-copies-"));
  const s3 = { ...accessTo(bucket), cacheFolder };
  const files = openS3Files({ ...s3, clock: systemClock });
  return {
    files,
    elsewhere: { s3 },
    list: () => bucket.list(),
    close: async () => {
      await files.close();
      await rm(cacheFolder, { recursive: true, force: true });
    },
  };
});

describe("a bucket on a bad line", () => {
  let bucket: TestBucket;
  let line: FaultyLine;
  let folder: string;
  let files: FileStore;
  before(async () => {
    bucket = await freshBucket();
    line = await faultyLine(bucket.endpoint);
    folder = await mkdtemp(join(tmpdir(), "quarry-copies-"));
    files = open({});
  });
  after(async () => {
    await files.close();
    await line.close();
    await rm(folder, { recursive: true, force: true });
  });
  const open = (settings: Partial<S3Settings>) =>
    openS3Files({
      ...accessTo(bucket),
      ...{ endpoint: line.url, cacheFolder: folder, clock: systemClock, silentMs: 3_000 },
      ...settings,
    });
  it("a stream is closed when what it brings cannot be sent", async () => {
    let isClosed = false;
    async function* content() {
      try {
        for (;;) yield new Uint8Array(PART_BYTES);
      } finally {
        isClosed = true;
      }
    }
    const away = open({ endpoint: "http://127.0.0.1:9", silentMs: 100 });
    await assert.rejects(away.put("documents/x/original", content()), { code: "store_unavailable" });
    assert.ok(isClosed);
    await away.close();
  });

  it("copies are made again after somebody took their folder away", async () => {
    const bytes = Buffer.from("a page");
    const contentHash = createHash("sha256").update(bytes).digest("hex");
    for (const path of ["copies/one", "copies/two"]) await files.put(path, bytes);
    const read = (path: string) => files.withLocal({ path, contentHash }, (local) => readFile(local, "utf8"));
    assert.equal(await read("copies/one"), "a page");
    for (const name of readdirSync(folder)) await rm(join(folder, name), { recursive: true });
    assert.equal(await read("copies/two"), "a page");
  });

  /** Does this to the first requests that match, one after another, then nothing more. */
  const first = (pattern: RegExp, ...faults: ReturnType<FaultyLine["decide"]>[]) => {
    line.seen.length = 0;
    line.decide = ({ method, path }) =>
      pattern.test(`${method} ${path}`) ? (faults.shift() ?? "none") : "none";
  };
  const slowDown = { status: 503, body: "<Error><Code>SlowDown</Code></Error>" };

  it("is asked again after 503, 500, a cut connection, half an answer and silence", async () => {
    for (const fault of [
      slowDown,
      { status: 500, body: "<Error><Code>InternalError</Code></Error>" },
      { status: 502, body: "<html>bad gateway</html>" },
      ...(["lost before", "lost after", "cut answer"] as const),
    ]) {
      first(/^PUT/, fault);
      await files.put("documents/a/page.md", Buffer.from(JSON.stringify(fault)));
      first(/^GET/, fault);
      assert.equal(String(await files.read("documents/a/page.md")), JSON.stringify(fault));
      assert.equal(line.seen.length, 2);
    }
  });

  it("is away when it goes on like that: nothing is taken for lost, and nothing for done", async () => {
    const always = (fault: ReturnType<FaultyLine["decide"]>) => {
      line.decide = () => fault;
    };
    for (const [fault, said] of [
      [slowDown, /cannot work now: SlowDown/],
      ["lost before", /cannot be reached: /],
      ["silence", /cannot be reached: no answer within 3 s/],
    ] as const) {
      always(fault);
      const away = { code: "store_unavailable", message: said };
      await Promise.all([
        assert.rejects(files.put("documents/b/page.md", Buffer.from("x")), away),
        assert.rejects(files.read("documents/a/page.md"), away),
        assert.rejects(files.removeFolder("documents/a"), away),
      ]);
    }
    always("none");
    assert.equal(await files.read("documents/b/page.md"), undefined);
    assert.ok(await files.read("documents/a/page.md"));
  });

  it("gets a large file part by part; a part that fails is sent again, an answer that was lost is found out", async () => {
    const bytes = randomBytes(2 * PART_BYTES + 5);
    first(/partNumber=2/, slowDown, "lost after");
    await files.put("documents/c/large.bin", chunks(bytes, 1_000_000));
    assert.equal(line.seen.filter((request) => /partNumber=/.test(request)).length, 5);
    assert.deepEqual(await files.read("documents/c/large.bin"), bytes);

    first(/^POST .*uploadId=/, "lost after");
    await files.put("documents/c/large.bin", chunks(bytes.subarray(1), 1_000_000));
    assert.deepEqual(await files.read("documents/c/large.bin"), bytes.subarray(1));
  });

  it("is not left with parts of a file that could not be sent", async () => {
    line.decide = ({ path }) => (path.includes("partNumber=2") ? slowDown : "none");
    const large = chunks(Buffer.alloc(2 * PART_BYTES), 1_000_000);
    await assert.rejects(files.put("documents/d/large.bin", large), { code: "store_unavailable" });
    const late = { status: 200, body: "<Error><Code>InvalidPart</Code></Error>" };
    line.decide = ({ method, path }) => (method === "POST" && path.includes("uploadId=") ? late : "none");
    const other = chunks(Buffer.alloc(2 * PART_BYTES), 1_000_000);
    await assert.rejects(files.put("documents/d/other.bin", other), { code: "store_failed" });
    line.decide = () => "none";
    assert.deepEqual(
      (await bucket.uploads()).filter((key) => key.includes("documents/d")),
      [],
    );
    assert.deepEqual(await bucket.list(`${PREFIX}/documents/d`), []);
  });

  it("that deletes some and not others has not deleted them", async () => {
    await files.put("documents/e/page.md", Buffer.from("x"));
    const body = "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>";
    first(/^POST .*delete=/, { status: 200, body });
    await assert.rejects(files.removeFolder("documents/e"), { message: /s3:DeleteObject/ });
    await files.removeFolder("documents/e");
  });

  it("says what to do about a key, a bucket, a region and a clock, and tells no secret", async () => {
    const clock = { ...systemClock, now: () => systemClock.now() - 3_600_000 };
    for (const [settings, said] of [
      [{ secretAccessKey: SECRET }, /refuses the key \(SignatureDoesNotMatch\): set AWS_ACCESS_KEY_ID/],
      [{ accessKeyId: "quarry:nobody", secretAccessKey: SECRET }, /refuses the key/],
      [
        { url: "s3://no-such-bucket/x" },
        /there is no bucket no-such-bucket at .*: create it, or set QUARRY_FILES/,
      ],
      [{ region: "eu-south-9" }, /another region: set AWS_REGION/],
      [{ clock }, /clock of this machine/],
      [{ endpoint: "http://127.0.0.1:9" }, /127\.0\.0\.1:9 cannot be reached: /],
    ] as const) {
      const other = open(settings);
      const error = await other.put("documents/f/page.md", Buffer.from("x")).then(
        () => assert.fail("it was taken"),
        (thrown) => thrown,
      );
      assert.equal(error.code, "store_unavailable", error.message);
      assert.match(error.message, said);
      assert.doesNotMatch(
        JSON.stringify([error.message, error.stack, error.cause]),
        /canary|AWS4-HMAC|Signature=/,
      );
      await other.close();
    }
  });

  it("is not taken for one when something else answers", async () => {
    for (const fault of [
      { status: 200, body: "<html>Welcome! Sign in to the network.</html>" },
      { status: 404, body: "<html>not found</html>" },
    ]) {
      line.decide = () => fault;
      const wrong = { code: "store_unavailable", message: /not as S3 does: set AWS_ENDPOINT_URL_S3/ };
      await assert.rejects(files.put("documents/f/page.md", Buffer.from("x")), wrong);
      await assert.rejects(files.removeFolder("documents/f"), wrong);
      await assert.rejects(files.read("documents/f/page.md"), wrong);
    }
    line.decide = () => "none";
  });

  it("keeps no process from ending", async () => {
    const waiting = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    line.decide = () => "none";
    const before = waiting();
    await files.put("documents/k/page.md", Buffer.from("x"));
    await files.read("documents/k/page.md");
    assert.equal(waiting(), before);
  });

  it("gives one copy to all who read a file at once, keeps it for the next, and takes it away at the end", async () => {
    const bytes = randomBytes(100_000);
    const stored = { path: "documents/g/original.pdf", contentHash: sha256(bytes) };
    const copies = join(folder, "copies");
    const reader = open({ cacheFolder: copies, cacheBytesMax: 150_000 });
    await reader.put(stored.path, bytes);
    first(/never/);
    const read = () => reader.withLocal(stored, async (path) => ({ path, bytes: await readFile(path) }));
    const [one, two] = await Promise.all([read(), read()]);
    assert.deepEqual([one.bytes, two.bytes], [bytes, bytes]);
    assert.equal((await read()).path, one.path);
    assert.equal(line.seen.length, 1);

    const other = { path: "documents/h/original.pdf", contentHash: sha256(bytes) };
    await reader.put(other.path, bytes);
    await reader.withLocal(stored, () =>
      reader.withLocal(other, async (path) => assert.ok(existsSync(path) && existsSync(one.path))),
    );
    assert.deepEqual(
      globSync("*/*.pdf", { cwd: copies }).map((path) => basename(path)),
      [basename(one.path)],
      "there is room for one only: the other was read no more",
    );
    await reader.close();
    assert.deepEqual(readdirSync(copies), []);
  });

  it("gives a copy only of what was put there", async () => {
    const bytes = randomBytes(100_000);
    const stored = { path: "documents/i/original.pdf", contentHash: sha256(bytes) };
    await files.put(stored.path, bytes);
    const read = () => files.withLocal(stored, (path) => readFile(path));
    first(/^GET/, "cut answer", slowDown);
    assert.deepEqual(await read(), bytes);
    await files.put(stored.path, Buffer.concat([bytes, bytes]));
    const other = open({ cacheFolder: join(folder, "other") });
    await assert.rejects(
      other.withLocal(stored, (path) => readFile(path)),
      { code: "store_failed", message: /is not what was put there/ },
    );
    await other.removeFolder("documents/i");
    await assert.rejects(
      other.withLocal(stored, (path) => readFile(path)),
      { code: "not_found", message: /there is no some\/prefix\/documents\/i\/original\.pdf/ },
    );
    await other.close();
  });

  it("copies of killed processes are removed, those of others stay, and who was taken for dead goes on", async () => {
    const copies = join(folder, "left");
    const stored = { path: "documents/j/a.txt", contentHash: sha256("x") };
    const living = open({ cacheFolder: copies });
    await living.put(stored.path, Buffer.from("x"));
    await living.withLocal(stored, async () => undefined);
    const [own] = readdirSync(copies);
    const ended = spawnSync(process.execPath, ["--version"]).pid;
    const [dead, elsewhere, longGone] = [
      own!.replace(/-\d+-/, `-${ended}-`),
      `0123456789abcdef-${ended}-aa`,
      "4711-bb",
    ];
    for (const name of [dead, elsewhere, longGone]) await mkdir(join(copies, name));
    const longAgo = new Date(Date.UTC(2020, 0));
    // However long this process has not touched its own, it runs.
    for (const name of [own!, longGone]) await utimes(join(copies, name), longAgo, longAgo);
    await removeLeftCopies(copies, systemClock);
    assert.deepEqual(readdirSync(copies).sort(), [own!, elsewhere].sort());
    await rm(join(copies, own!), { recursive: true });
    assert.equal(await living.withLocal(stored, (path) => readFile(path, "utf8")), "x");
    await living.close();
    await removeLeftCopies(join(folder, "none"), systemClock);
  });
});

function accessTo({ bucket, endpoint, region, accessKeyId, secretAccessKey }: TestBucket) {
  return { url: `s3://${bucket}/${PREFIX}`, endpoint, region, accessKeyId, secretAccessKey };
}

function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
