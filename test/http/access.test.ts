import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isLoopback } from "../../src/http/hosts.ts";
import { Keys } from "../../src/http/keys.ts";
import { addressName, RateLimit } from "../../src/http/rate-limit.ts";
import { HttpServer } from "../../src/http/server.ts";
import { manualClock } from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import { type Serving, serveForTest } from "./serving.ts";

const ID = "01990b0e-0000-7000-8000-000000000000";
const KEYS = {
  read: "read-key-0123456789",
  write: "write-key-0123456789",
  work: "work-key-0123456789",
  "read+write": "read-and-write-0123456789",
};
const SETTING = Object.entries(KEYS)
  .map(([scopes, key]) => `${scopes}=${key}`)
  .join(",");

interface Route {
  readonly method: string;
  readonly path: string;
  readonly scope: string;
}

async function routesOf(serving: Serving): Promise<Route[]> {
  const answer = await serving.ask("/openapi.json", { headers: { "x-api-key": KEYS.read } });
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, { "x-scope": string }>> };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{\w+\}/g, ID),
      scope: operation["x-scope"],
    })),
  );
}

describe("keys and scopes", () => {
  let serving: Serving;
  before(async () => {
    serving = await serveForTest({ settings: { apiKey: SETTING } });
  });
  after(() => serving.close());

  it("every route asks for its scope, and only health and readiness are open", async () => {
    const routes = await routesOf(serving);
    assert.ok(routes.length >= 14);
    const open = routes.filter(({ scope }) => scope === "none").map(({ path }) => path);
    assert.deepEqual(open.sort(), ["/health", "/ready"]);
    for (const { method, path, scope } of routes) {
      const statusWith = async (headers: Record<string, string>) => {
        const answer = await serving.ask(path, { method, headers });
        // A stream would go on.
        await answer.body?.cancel();
        return answer.status;
      };
      const named = `${method} ${path}`;
      if (scope !== "none") assert.equal(await statusWith({}), 401, named);
      for (const [scopes, key] of Object.entries(KEYS)) {
        const status = await statusWith({ authorization: `Bearer ${key}` });
        const isAllowed = scope === "none" || scopes.split("+").includes(scope);
        assert.equal(status === 403, !isAllowed, `${named} with ${scopes}: ${status}`);
        assert.notEqual(status, 401, named);
      }
    }
  });

  it("a key is taken from either header, whatever the case of Bearer", async () => {
    const ways: Record<string, string>[] = [
      { authorization: `Bearer ${KEYS.read}` },
      { authorization: `bearer ${KEYS.read}` },
      { "x-api-key": KEYS.read },
    ];
    for (const headers of ways) assert.equal((await serving.ask("/lanes", { headers })).status, 200);
  });

  it("readiness tells what it looked at only to those who may read", async () => {
    assert.deepEqual(await (await serving.ask("/ready")).json(), { isReady: true });
    const told = await serving.ask("/ready", { headers: { "x-api-key": KEYS.read } });
    assert.deepEqual(await told.json(), { isReady: true, checks: ["database", "disk"] });
    const notTold = await serving.ask("/ready", { headers: { "x-api-key": KEYS.work } });
    assert.deepEqual(await notTold.json(), { isReady: true });
  });

  it("a key in the setting may stand alone and is refused when it is short, double or for nothing known", () => {
    assert.deepEqual(
      [...new Keys("0123456789abcdef").find("0123456789abcdef")!.scopes],
      ["read", "write", "work"],
    );
    assert.deepEqual(
      [...new Keys("0123456789abcde==").find("0123456789abcde==")!.scopes],
      ["read", "write", "work"],
    );
    for (const setting of [
      "short",
      "read=short",
      "read=0123456789abcdef,short",
      "admin=0123456789abcdef",
      "read+admin=0123456789abcdef",
      "read=0123456789abcdef,write=0123456789abcdef",
      "0123456789abcdef,",
      "0123456789 abcdef",
      "0123456789äbcdef",
    ])
      assert.throws(
        () => new Keys(setting),
        (error: Error & { code: string }) =>
          error.code === "invalid_input" &&
          /QUARRY_API_KEY/.test(error.message) &&
          !/0123/.test(error.message),
        setting,
      );
  });
});

describe("rates", () => {
  it("a key may ask so often a minute; others are not held up by it", async () => {
    const clock = manualClock();
    const serving = await serveForTest({ clock, settings: { apiKey: SETTING, rateLimit: 3 } });
    const ask = (key: string) => serving.ask("/lanes", { headers: { "x-api-key": key } });
    for (let count = 0; count < 3; count += 1) assert.equal((await ask(KEYS.read)).status, 200);
    const refused = await ask(KEYS.read);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("retry-after"), "20");
    assert.equal(((await refused.json()) as { code: string }).code, "rate_limited");
    assert.equal((await ask(KEYS["read+write"])).status, 200);
    clock.advance(20_000);
    assert.equal((await ask(KEYS.read)).status, 200);
    assert.equal((await ask(KEYS.read)).status, 429);
    await serving.close();
  });

  it("without keys, an address may ask so often", async () => {
    const serving = await serveForTest({ clock: manualClock(), settings: { rateLimit: 2 } });
    const statuses = [];
    for (const address of ["", "1.2.3.4", "5.6.7.8"])
      statuses.push((await serving.ask("/health", { headers: { "x-forwarded-for": address } })).status);
    assert.deepEqual(statuses, [200, 200, 429]);
    await serving.close();
  });

  it("after ten wrong keys an address is not told any more whether a key is right", async () => {
    const clock = manualClock();
    const serving = await serveForTest({ clock, settings: { apiKey: SETTING } });
    const ask = async (key: string) =>
      (await serving.ask("/lanes", { headers: { "x-api-key": key } })).status;
    for (let count = 0; count < 10; count += 1) assert.equal(await ask(`wrong-key-0123456789-${count}`), 401);
    assert.equal(await ask("wrong-key-0123456789-10"), 429);
    assert.equal(await ask(KEYS.read), 429);
    assert.equal((await serving.ask("/health")).status, 200);
    clock.advance(6_000);
    assert.equal(await ask(KEYS.read), 200);
    await serving.close();
  });

  it("no more than 10,000 names are remembered", () => {
    const limit = new RateLimit(1, manualClock());
    assert.equal(limit.take("first"), 0);
    assert.ok(limit.take("first") > 0);
    for (let count = 0; count < 10_000; count += 1) limit.take(`other-${count}`);
    assert.equal(limit.take("first"), 0);
    assert.ok(limit.take("other-9999") > 0);
  });

  it("addresses of one IPv6 network count as one", () => {
    assert.equal(addressName("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    assert.equal(addressName("2001:db8:1:2::9"), addressName("2001:db8:1:2:ffff::1"));
    assert.equal(addressName("::1"), "0:0:0:0::/64");
    assert.equal(addressName("::ffff:10.0.0.1"), "::ffff:10.0.0.1");
    assert.equal(addressName("10.0.0.1"), "10.0.0.1");
  });
});

describe("where it listens", () => {
  it("only loopback needs no key", async () => {
    for (const host of ["127.0.0.1", "127.8.9.1", "::1", "localhost"]) assert.ok(isLoopback(host), host);
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.evil.test", "localhost.evil.test", "128.0.0.1"])
      assert.ok(!isLoopback(host), host);
    const serving = await serveForTest();
    const { quarry } = serving;
    const start = (settings: object) =>
      new HttpServer({ quarry, settings: { ...quarry.settings, ...settings }, log: silentLog });
    for (const host of ["0.0.0.0", "::", "quarry.test"])
      assert.throws(() => start({ host }), { code: "invalid_input", message: /QUARRY_API_KEY/ });
    assert.throws(() => start({ apiKey: "short" }), { code: "invalid_input", message: /QUARRY_API_KEY/ });
    const exposed = await start({ host: "0.0.0.0", apiKey: KEYS.read }).listen();
    const port = new URL(exposed.url).port;
    const answer = await fetch(`http://127.0.0.1:${port}/lanes`);
    assert.equal(answer.status, 401);
    await exposed.stop();
    await serving.close();
  });

  it("a port that is taken is told, with what to do", async () => {
    const serving = await serveForTest();
    const { quarry, port } = serving;
    const second = new HttpServer({ quarry, settings: { ...quarry.settings, port }, log: silentLog });
    await assert.rejects(second.listen(), { message: /something else listens there.*--port/ });
    await serving.close();
  });
});
