import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { freshPostgres } from "./support/postgres.ts";
import { type Services, startServices } from "./support/services.ts";

// These tests stop, restart and inspect servers, so they never touch the ones that serve the other test files.
delete process.env.TEST_DATABASE_URL;
delete process.env.TEST_REDIS_URL;

describe("services started for tests", () => {
  let services: Services;

  before(async () => {
    services = await startServices();
    process.env.TEST_DATABASE_URL = services.postgresUrl;
  });

  after(async () => {
    delete process.env.TEST_DATABASE_URL;
    await services.stop();
  });

  it("PostgreSQL does not run as root, and its folder is closed to others", async () => {
    const { folder } = await inspectPostgres(services.postgresUrl);
    assert.notEqual(statSync(join(folder, "postmaster.pid")).uid, 0);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  it("PostgreSQL keeps what it commits, and listens on this machine only", async () => {
    const settings = await query(
      services.postgresUrl,
      `select name, setting from pg_settings
       where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'max_connections',
                      'listen_addresses', 'unix_socket_directories')`,
    );
    assert.deepEqual(Object.fromEntries(settings.map(({ name, setting }) => [name, setting])), {
      fsync: "on",
      synchronous_commit: "on",
      full_page_writes: "on",
      max_connections: "200",
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
    });
  });

  it("two fresh databases do not see each other's tables, and drop removes one despite open connections", async () => {
    const [first, second] = await Promise.all([freshPostgres(), freshPostgres()]);
    await query(first.url, "create table page (id int)");
    const visible = "select to_regclass('page') is not null as found";
    assert.deepEqual(await query(first.url, visible), [{ found: true }]);
    assert.deepEqual(await query(second.url, visible), [{ found: false }]);

    const lingering = new pg.Client({ connectionString: first.url });
    lingering.on("error", () => undefined);
    await lingering.connect();
    await first.drop();
    await lingering.end();
    await assert.rejects(query(first.url, "select 1"), { code: "3D000" });
    assert.deepEqual(await query(second.url, "select 1 as one"), [{ one: 1 }]);
    await second.drop();
    await second.drop();
  });

  it("Redis answers, and appends every write to a file", async () => {
    assert.equal(await redis(services.redisUrl, "PING"), "+PONG\r\n");
    assert.match(await redis(services.redisUrl, "CONFIG GET appendonly"), /\r\nyes\r\n/);
    assert.match(await redis(services.redisUrl, "CONFIG GET save"), /\r\n\$0\r\n\r\n/);
  });

  it("PostgreSQL comes back from a crash at the same address with what was committed", async () => {
    const database = await freshPostgres();
    await query(database.url, "create table page (id int); insert into page values (1)");
    const open = new pg.Client({ connectionString: database.url });
    open.on("error", () => undefined);
    await open.connect();
    await open.query("begin; insert into page values (2)");
    const before = await inspectPostgres(services.postgresUrl);

    await services.restartPostgres();

    assert.deepEqual(await query(database.url, "select id from page"), [{ id: 1 }]);
    const now = await inspectPostgres(services.postgresUrl);
    assert.equal(now.folder, before.folder);
    assert.notEqual(now.pid, before.pid);
    const log = readFileSync(join(now.folder, "../server.log"), "utf8");
    assert.match(log, /immediate shutdown request/);
    assert.match(log, /automatic recovery in progress/);
    await assert.rejects(open.query("commit"));
    await open.end().catch(() => undefined);
    await database.drop();
  });

  it("a server that was not started here is used as it is: not restarted, not stopped", async () => {
    const borrowed = await startServices({ redis: false });
    assert.equal(borrowed.postgresUrl, services.postgresUrl);
    assert.match(borrowed.description, /external, TEST_DATABASE_URL/);
    await assert.rejects(borrowed.restartPostgres(), /TEST_DATABASE_URL was not started here/);
    await borrowed.stop();
    assert.deepEqual(await query(services.postgresUrl, "select 1 as one"), [{ one: 1 }]);
    assert.throws(() => borrowed.redisUrl, /leave Redis out/);
  });
});

describe("services leave nothing behind", () => {
  const START = `
    import { startServices } from ${JSON.stringify(import.meta.resolve("./support/services.ts"))};
    const services = await startServices();
    const { postgresUrl, redisUrl } = services;
    const line = (await import("node:events")).once(process.stdin, "data");
    console.log(JSON.stringify({ postgresUrl, redisUrl }));
    await line;
  `;
  const WAYS_TO_END: Record<string, { script?: string; end(child: ChildProcess): void; exit: unknown[] }> = {
    "Ctrl-C": { end: (child) => child.kill("SIGINT"), exit: [null, "SIGINT"] },
    SIGKILL: { end: (child) => child.kill("SIGKILL"), exit: [null, "SIGKILL"] },
    "an uncaught error": {
      script: "setImmediate(() => { throw new Error('on purpose'); });",
      end: (child) => child.stdin?.end("\n"),
      exit: [1, null],
    },
    stop: {
      script: "await services.stop(); process.exit(7);",
      end: (child) => child.stdin?.end("\n"),
      exit: [7, null],
    },
  };

  for (const [name, way] of Object.entries(WAYS_TO_END)) {
    it(`when their process ends by ${name}`, async () => {
      const child = runScript(START + (way.script ?? ""));
      const exited = once(child, "exit");
      const [line] = await Promise.race([
        once(child.stdout!, "data"),
        exited.then(async () => assert.fail(`the script ended too early: ${await text(child.stderr!)}`)),
      ]);
      const { postgresUrl, redisUrl } = JSON.parse(line);
      const postgres = await inspectPostgres(postgresUrl);
      const info = await redis(redisUrl, "INFO server");
      const folders = [
        join(postgres.folder, ".."),
        (await redis(redisUrl, "CONFIG GET dir")).split("\r\n")[4]!,
      ];
      const pids = [postgres.pid, Number(info.match(/process_id:(\d+)/)![1])];
      assert.ok(folders.every((folder) => existsSync(folder)));
      assert.ok(pids.every(isAlive));

      way.end(child);
      assert.deepEqual(await exited, way.exit);

      await eventually(() => !pids.some(isAlive), `processes ${pids} are still there`);
      await eventually(
        () => !folders.some((folder) => existsSync(folder)),
        `folders ${folders} are still there`,
      );
    });
  }

  it("a test file run by hand gets a server at its first database, and ends by itself", async () => {
    const child = runScript(`
      import { freshPostgres } from ${JSON.stringify(import.meta.resolve("./support/postgres.ts"))};
      const [first, second] = await Promise.all([freshPostgres(), freshPostgres()]);
      console.log(JSON.stringify([first.url, second.url]));
      await first.drop();
    `);
    const exited = once(child, "exit");
    const [line] = await once(child.stdout!, "data");
    const [first, second] = JSON.parse(line).map((url: string) => new URL(url));
    assert.equal(first.port, second.port);
    assert.notEqual(first.pathname, second.pathname);
    assert.deepEqual(await exited, [0, null]);
    await eventually(async () => !(await isListening(Number(first.port))), "the server is still there");
  });
});

describe("a server that cannot be had is a failure", () => {
  it("says which variable is wrong when the server named in it does not answer", async () => {
    const child = runScript("", {
      args: [join(import.meta.dirname, "run.ts"), import.meta.filename],
      env: { TEST_DATABASE_URL: "postgres://127.0.0.1:1/nowhere" },
    });
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    assert.equal(code, 1);
    assert.match(stderr, /TEST_DATABASE_URL cannot be used: .*ECONNREFUSED/);
  });

  it("says what to install or set when Redis is not on this machine", async () => {
    const child = runScript(
      `import { startServices } from ${JSON.stringify(import.meta.resolve("./support/services.ts"))};
       await startServices({ postgres: false });`,
      { env: { PATH: "/nowhere" } },
    );
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /Redis was not found: install it .*apt-get install redis-server.* or set TEST_REDIS_URL/,
    );
  });
});

/** A process of its own, outside node's test runner and without the servers of this one. */
function runScript(script: string, options: { args?: string[]; env?: NodeJS.ProcessEnv } = {}): ChildProcess {
  const { NODE_TEST_CONTEXT: _, TEST_DATABASE_URL: _1, TEST_REDIS_URL: _2, ...env } = process.env;
  return spawn(process.execPath, options.args ?? ["--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...env, ...options.env },
  });
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function inspectPostgres(url: string): Promise<{ pid: number; folder: string }> {
  const [row] = await query(
    url,
    "select current_setting('data_directory') as folder, pg_read_file('postmaster.pid') as pid",
  );
  return { folder: String(row!.folder), pid: Number.parseInt(String(row!.pid), 10) };
}

async function redis(url: string, command: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port) });
  socket.write(`${command}\r\n`);
  const [answer] = await once(socket, "data");
  socket.destroy();
  return String(answer);
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function eventually(isSo: () => boolean | Promise<boolean>, complaint: string): Promise<void> {
  for (let poll = 0; poll < 300; poll++) {
    if (await isSo()) return;
    await pause(50);
  }
  assert.fail(complaint);
}
