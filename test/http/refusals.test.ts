import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { ErrorCode } from "../../src/index.ts";
import { type RawAnswer, rawAnswers, type Serving, sendRaw, serveForTest } from "./serving.ts";

const ID = "01990b0e-0000-7000-8000-000000000000";
const KEYS = {
  read: "read-key-0123456789",
  write: "write-key-0123456789",
  work: "work-key-0123456789",
  all: "all-key-0123456789abc",
};

/** A request as it goes over the wire. PORT stands for the server's. A Host is added unless one is given. */
interface Sent {
  readonly method?: string;
  readonly target?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}

type Case = readonly [name: string, sent: Sent, status: number, code: ErrorCode];

const get = (target: string, ...headers: string[]): Sent => ({ target, headers });
const post = (target: string, ...headers: string[]): Sent => ({ method: "POST", target, headers });
const retry = (body: string | Buffer, ...headers: string[]): Sent => ({
  method: "POST",
  target: `/documents/${ID}/retry`,
  headers: headers.length > 0 ? headers : ["Content-Type: application/json"],
  body,
});

const HOSTS: readonly Case[] = [
  ["a foreign name", get("/lanes", "Host: evil.test"), 403, "forbidden"],
  ["a foreign name with our port", get("/lanes", "Host: evil.test:PORT"), 403, "forbidden"],
  ["a foreign name, even for health", get("/health", "Host: evil.test:PORT"), 403, "forbidden"],
  ["a foreign name, even for readiness", get("/ready", "Host: evil.test:PORT"), 403, "forbidden"],
  ["our address without a port", get("/lanes", "Host: 127.0.0.1"), 403, "forbidden"],
  ["our address with another port", get("/lanes", "Host: 127.0.0.1:1"), 403, "forbidden"],
  ["localhost with another port", get("/lanes", "Host: localhost:1"), 403, "forbidden"],
  ["a name that begins with ours", get("/lanes", "Host: localhost.evil.test:PORT"), 403, "forbidden"],
  ["a name that ends with ours", get("/lanes", "Host: evil-localhost:PORT"), 403, "forbidden"],
  ["our address with a dot after it", get("/lanes", "Host: 127.0.0.1.:PORT"), 403, "forbidden"],
  ["another loopback address", get("/lanes", "Host: 127.0.0.2:PORT"), 403, "forbidden"],
  ["the address of any", get("/lanes", "Host: 0.0.0.0:PORT"), 403, "forbidden"],
  ["IPv6 loopback with another port", get("/lanes", "Host: [::1]:1"), 403, "forbidden"],
  ["an allowed name with another port", get("/lanes", "Host: quarry.test:1"), 403, "forbidden"],
  ["an allowed name and port without the port", get("/lanes", "Host: proxy.test"), 403, "forbidden"],
  [
    "X-Forwarded-Host is not believed",
    get("/lanes", "Host: evil.test", "X-Forwarded-Host: 127.0.0.1:PORT"),
    403,
    "forbidden",
  ],
  [
    "Forwarded is not believed",
    get("/lanes", "Host: evil.test", "Forwarded: host=127.0.0.1:PORT"),
    403,
    "forbidden",
  ],
  ["an address as one number", get("/lanes", "Host: 2130706433:PORT"), 403, "forbidden"],
  ["a user before the host", get("/lanes", "Host: user@127.0.0.1:PORT"), 400, "invalid_input"],
  ["a path after the host", get("/lanes", "Host: 127.0.0.1:PORT/x"), 400, "invalid_input"],
  ["no Host", get("/lanes", "NoHost"), 400, "invalid_input"],
  ["an empty Host", get("/lanes", "Host: "), 400, "invalid_input"],
  [
    "the same Host twice",
    get("/lanes", "Host: 127.0.0.1:PORT", "Host: 127.0.0.1:PORT"),
    400,
    "invalid_input",
  ],
  ["a second Host", get("/lanes", "Host: 127.0.0.1:PORT", "Host: evil.test"), 400, "invalid_input"],
  ["two names in one Host", get("/lanes", "Host: 127.0.0.1:PORT, evil.test"), 400, "invalid_input"],
];

const ORIGINS: readonly Case[] = [
  ["null", get("/lanes", "Origin: null"), 403, "forbidden"],
  ["empty", get("/lanes", "Origin: "), 403, "forbidden"],
  ["foreign, for a read", get("/lanes", "Origin: http://evil.test"), 403, "forbidden"],
  ["foreign, for health", get("/health", "Origin: http://evil.test"), 403, "forbidden"],
  ["foreign, for a write", post("/lanes/chunks.vector/pause", "Origin: http://evil.test"), 403, "forbidden"],
  [
    "foreign, asking beforehand",
    { method: "OPTIONS", target: "/lanes", headers: ["Origin: http://evil.test"] },
    403,
    "forbidden",
  ],
  ["another port", get("/lanes", "Origin: http://127.0.0.1:1"), 403, "forbidden"],
  ["another scheme", get("/lanes", "Origin: https://127.0.0.1:PORT"), 403, "forbidden"],
  ["another of our names", get("/lanes", "Origin: http://localhost:PORT"), 403, "forbidden"],
  ["a path behind it", get("/lanes", "Origin: http://127.0.0.1:PORT/"), 403, "forbidden"],
  ["a file", get("/lanes", "Origin: file://"), 403, "forbidden"],
  ["an extension", get("/lanes", "Origin: chrome-extension://abc"), 403, "forbidden"],
  ["two of them", get("/lanes", "Origin: http://127.0.0.1:PORT", "Origin: null"), 403, "forbidden"],
];

const LINK = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
const SITES: readonly Case[] = [
  ["cross-site", get("/lanes", "Sec-Fetch-Site: cross-site"), 403, "forbidden"],
  ["same-site", get("/lanes", "Sec-Fetch-Site: same-site"), 403, "forbidden"],
  ["something unknown", get("/lanes", "Sec-Fetch-Site: banana"), 403, "forbidden"],
  ["cross-site health", get("/health", "Sec-Fetch-Site: cross-site"), 403, "forbidden"],
  ["a cross-site write", post("/lanes/chunks.vector/pause", "Sec-Fetch-Site: cross-site"), 403, "forbidden"],
  ["a link to what is no page", get("/lanes", "Sec-Fetch-Site: cross-site", ...LINK), 403, "forbidden"],
  ["a form to a page", post("/docs", "Sec-Fetch-Site: cross-site", ...LINK), 403, "forbidden"],
  [
    "a page in a frame",
    get("/docs", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
    403,
    "forbidden",
  ],
  [
    "a page as a picture",
    get("/docs", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"),
    403,
    "forbidden",
  ],
];

const METHODS: readonly Case[] = [
  ["POST /health", post("/health"), 405, "method_not_allowed"],
  ["POST /ready", post("/ready"), 405, "method_not_allowed"],
  ["POST /docs", post("/docs"), 405, "method_not_allowed"],
  ["POST /search", post("/search"), 405, "method_not_allowed"],
  ["PUT /documents", { method: "PUT", target: "/documents" }, 405, "method_not_allowed"],
  ["POST /documents/{id}", post(`/documents/${ID}`), 405, "method_not_allowed"],
  ["PATCH /documents/{id}", { method: "PATCH", target: `/documents/${ID}` }, 405, "method_not_allowed"],
  ["DELETE /documents", { method: "DELETE", target: "/documents" }, 405, "method_not_allowed"],
  ["DELETE /lanes", { method: "DELETE", target: "/lanes" }, 405, "method_not_allowed"],
  ["GET a pause", get("/lanes/chunks.vector/pause"), 405, "method_not_allowed"],
  ["HEAD a pause", { method: "HEAD", target: "/lanes/chunks.vector/pause" }, 405, "method_not_allowed"],
  ["GET a retry", get(`/documents/${ID}/retry`), 405, "method_not_allowed"],
  ["DELETE /openapi.json", { method: "DELETE", target: "/openapi.json" }, 405, "method_not_allowed"],
  ["TRACE /", { method: "TRACE", target: "/" }, 405, "method_not_allowed"],
  ["TRACE /health", { method: "TRACE", target: "/health" }, 405, "method_not_allowed"],
  ["QUERY /search", { method: "QUERY", target: "/search" }, 405, "method_not_allowed"],
  ["PROPFIND /", { method: "PROPFIND", target: "/" }, 405, "method_not_allowed"],
  [
    "a method in a header",
    get("/lanes/chunks.vector/pause", "X-HTTP-Method-Override: POST"),
    405,
    "method_not_allowed",
  ],
];

const PATHS: readonly Case[] = [
  ["nothing there", get("/nothing"), 404, "not_found"],
  ["nothing there, for OPTIONS", { method: "OPTIONS", target: "/nothing" }, 404, "not_found"],
  ["a slash too many at the end", get("/health/"), 404, "not_found"],
  ["other case", get("/HEALTH"), 404, "not_found"],
  ["a parameter of the path", get("/health;x=1"), 404, "not_found"],
  ["a space behind it", get("/health%20"), 404, "not_found"],
  ["a file of the system", get("/etc/passwd"), 404, "not_found"],
  ["a file of ours", get("/package.json"), 404, "not_found"],
  ["a lane that is not there", post("/lanes/nothing/pause"), 404, "not_found"],
  ["a lane named like a method", post("/lanes/__proto__/resume"), 404, "not_found"],
  ["a document that is not there", get(`/documents/${ID}`), 404, "not_found"],
  ["deleting what is not there", { method: "DELETE", target: `/documents/${ID}` }, 404, "not_found"],
  ["retrying what is not there", post(`/documents/${ID}/retry`), 404, "not_found"],
  ["dots", get("/documents/../health"), 400, "invalid_input"],
  ["dots, escaped", get("/documents/%2e%2e/health"), 400, "invalid_input"],
  ["dots, half escaped", get("/documents/.%2E/health"), 400, "invalid_input"],
  ["dots at the end", get("/documents/.."), 400, "invalid_input"],
  ["dots above the root", get("/../../etc/passwd"), 400, "invalid_input"],
  ["one dot", get("/./health"), 400, "invalid_input"],
  ["two slashes at the front", get("//health"), 400, "invalid_input"],
  ["another server after two slashes", get("//evil.test/health"), 400, "invalid_input"],
  ["two slashes inside", get("/documents//retry"), 400, "invalid_input"],
  ["a backslash", get("/documents\\..\\health"), 400, "invalid_input"],
  ["a backslash, escaped", get("/documents/a%5cb"), 400, "invalid_input"],
  ["a slash, escaped", get("/lanes/a%2Fb/pause"), 400, "invalid_input"],
  ["NUL, escaped", get("/health%00"), 400, "invalid_input"],
  ["NUL in a parameter", get(`/documents/${ID}%00`), 400, "invalid_input"],
  ["a lone %", get("/documents/%"), 400, "invalid_input"],
  ["% and no digits", get("/documents/%zz"), 400, "invalid_input"],
  ["no UTF-8", get("/documents/%ff"), 400, "invalid_input"],
  ["too long a UTF-8", get("/documents/%c0%af"), 400, "invalid_input"],
  ["half a surrogate pair", get("/documents/%ed%a0%80"), 400, "invalid_input"],
  ["a fragment", get("/health#x"), 400, "invalid_input"],
  ["a whole address", get("http://127.0.0.1:PORT/health"), 400, "invalid_input"],
  ["a whole address of another", get("http://evil.test/health"), 400, "invalid_input"],
  ["another scheme", get("file:///etc/passwd"), 400, "invalid_input"],
  ["everything", { method: "OPTIONS", target: "*" }, 400, "invalid_input"],
  ["an id that is none", get("/documents/1"), 400, "invalid_input"],
  ["an id with a letter too many", get(`/documents/${ID}a`), 400, "invalid_input"],
  ["an id with SQL", get(`/documents/${ID}'--`), 400, "invalid_input"],
  ["a lane with too long a name", post(`/lanes/${"x".repeat(201)}/pause`), 400, "invalid_input"],
];

const repeated = (pair: string, times: number) => Array(times).fill(pair).join("&");
const QUERIES: readonly Case[] = [
  ["an unknown parameter", get("/documents?nothing=1"), 400, "invalid_input"],
  ["an unknown parameter where there are none", get("/health?x=1"), 400, "invalid_input"],
  ["a parameter in other case", get("/documents?Limit=1"), 400, "invalid_input"],
  ["__proto__", get("/documents?__proto__=1"), 400, "invalid_input"],
  ["constructor", get("/documents?constructor=1"), 400, "invalid_input"],
  ["brackets", get("/documents?limit[]=1"), 400, "invalid_input"],
  ["the same twice", get("/documents?limit=1&limit=1"), 400, "invalid_input"],
  ["the same twice, once escaped", get("/documents?limit=1&%6cimit=2"), 400, "invalid_input"],
  ["limit 0", get("/documents?limit=0"), 400, "invalid_input"],
  ["limit -1", get("/documents?limit=-1"), 400, "invalid_input"],
  ["limit too high", get("/documents?limit=1001"), 400, "invalid_input"],
  ["limit far too high", get("/documents?limit=99999999999999999999"), 400, "invalid_input"],
  ["half a limit", get("/documents?limit=1.5"), 400, "invalid_input"],
  ["limit in words", get("/documents?limit=ten"), 400, "invalid_input"],
  ["limit empty", get("/documents?limit="), 400, "invalid_input"],
  ["limit without a value", get("/documents?limit"), 400, "invalid_input"],
  ["limit as a power", get("/documents?limit=1e2"), 400, "invalid_input"],
  ["limit in hexadecimal", get("/documents?limit=0x10"), 400, "invalid_input"],
  ["limit with a space", get("/documents?limit=+5"), 400, "invalid_input"],
  ["limit with zeros before it", get("/documents?limit=007"), 400, "invalid_input"],
  ["limit Infinity", get("/documents?limit=Infinity"), 400, "invalid_input"],
  ["an unknown state", get("/documents?state=lost"), 400, "invalid_input"],
  ["an unknown status", get("/documents?ocr=lost"), 400, "invalid_input"],
  ["a cursor that is none", get("/documents?after=nonsense"), 400, "invalid_input"],
  ["an empty cursor", get("/documents?after="), 400, "invalid_input"],
  ["a cursor too long", get(`/documents?after=${"x".repeat(201)}`), 400, "invalid_input"],
  ["an empty name", get("/documents?name="), 400, "invalid_input"],
  ["NUL in a name", get("/documents?name=a%00b"), 400, "invalid_input"],
  ["half a surrogate pair in a name", get("/documents?name=%ed%a0%80"), 400, "invalid_input"],
  ["no UTF-8 in a name", get("/documents?name=%ff"), 400, "invalid_input"],
  ["% and no digits in a name", get("/documents?name=%zz"), 400, "invalid_input"],
  ["a lone % in a name", get("/documents?name=100%"), 400, "invalid_input"],
  ["a tenant too long", get(`/documents?tenant=${"x".repeat(101)}`), 400, "invalid_input"],
  ["more than 200 parameters", get(`/search?${repeated("document=x", 201)}`), 400, "invalid_input"],
  ["a search for nothing", get("/search"), 400, "invalid_input"],
  ["an empty search", get("/search?q="), 400, "invalid_input"],
  ["a search for a space", get("/search?q=%20"), 400, "invalid_input"],
  ["two searches", get("/search?q=a&q=b"), 400, "invalid_input"],
  ["too many results", get("/search?q=a&limit=101"), 400, "invalid_input"],
  ["an unknown mode", get("/search?q=a&mode=magic"), 400, "invalid_input"],
  ["a document that is no id", get("/search?q=a&document=1"), 400, "invalid_input"],
  ["too many documents", get(`/search?q=a&${repeated(`document=${ID}`, 101)}`), 400, "invalid_input"],
  ["metadata without a value", get("/search?q=a&metadata=author"), 400, "invalid_input"],
  ["metadata without a name", get("/search?q=a&metadata==Ann"), 400, "invalid_input"],
  ["too much metadata", get(`/search?q=a&${repeated("metadata=a%3Db", 21)}`), 400, "invalid_input"],
  ["a search of too many characters", get(`/search?q=${"a".repeat(10_001)}`), 400, "invalid_input"],
];

const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const JSON_BODY = "Content-Type: application/json";
const BODIES: readonly Case[] = [
  ["text", retry("{}", "Content-Type: text/plain"), 415, "request_unsupported"],
  ["no type", retry("{}", "X-Nothing: 1"), 415, "request_unsupported"],
  [
    "a form",
    retry("phase=ocr", "Content-Type: application/x-www-form-urlencoded"),
    415,
    "request_unsupported",
  ],
  ["parts", retry("--x--", "Content-Type: multipart/form-data; boundary=x"), 415, "request_unsupported"],
  ["nearly JSON", retry("{}", "Content-Type: application/jsonp"), 415, "request_unsupported"],
  [
    "JSON for something else",
    retry("{}", "Content-Type: application/json-patch+json"),
    415,
    "request_unsupported",
  ],
  ["another character set", retry("{}", `${JSON_BODY}; charset=latin1`), 415, "request_unsupported"],
  ["two types", retry("{}", JSON_BODY, "Content-Type: text/plain"), 415, "request_unsupported"],
  ["compressed", retry("{}", JSON_BODY, "Content-Encoding: gzip"), 415, "request_unsupported"],
  ["not JSON", retry("{phase: 1}"), 400, "invalid_input"],
  ["cut off", retry('{"phase":'), 400, "invalid_input"],
  ["a comma too many", retry('{"phase":"ocr",}'), 400, "invalid_input"],
  ["NaN", retry('{"phase":NaN}'), 400, "invalid_input"],
  ["two values", retry("{}{}"), 400, "invalid_input"],
  ["only spaces", retry("   "), 400, "invalid_input"],
  ["a list", retry("[]"), 400, "invalid_input"],
  ["null", retry("null"), 400, "invalid_input"],
  ["a text", retry('"ocr"'), 400, "invalid_input"],
  ["an unknown field", retry('{"nothing":1}'), 400, "invalid_input"],
  ["a field in other case", retry('{"Phase":"ocr"}'), 400, "invalid_input"],
  ["a wrong value", retry('{"phase":"magic"}'), 400, "invalid_input"],
  ["a number for a text", retry('{"phase":1}'), 400, "invalid_input"],
  ["null for a text", retry('{"phase":null}'), 400, "invalid_input"],
  ["__proto__", retry('{"__proto__":{"phase":"ocr"}}'), 400, "invalid_input"],
  ["constructor", retry('{"constructor":{"prototype":{}}}'), 400, "invalid_input"],
  ["NUL in a text", retry('{"phase":"\\u0000"}'), 400, "invalid_input"],
  ["NUL in a name", retry('{"a\\u0000":1}'), 400, "invalid_input"],
  ["half a surrogate pair", retry('{"phase":"\\ud800"}'), 400, "invalid_input"],
  ["no UTF-8", retry(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), 400, "invalid_input"],
  ["nested 65 deep", retry(deep(65)), 400, "invalid_input"],
  ["nested 100,000 deep", retry("[".repeat(100_000)), 400, "invalid_input"],
  ["nested deep after a text of brackets", retry(`{"a":"]]]\\"","b":${deep(65)}}`), 400, "invalid_input"],
  ["too large", retry(`"${"x".repeat(1_048_576)}"`), 413, "request_too_large"],
  ["too large, by what it says", retry("x", JSON_BODY, "Content-Length: 1048577"), 413, "request_too_large"],
  [
    "too large, in parts",
    retry(chunked(`"${"x".repeat(1_048_576)}"`), JSON_BODY, "Transfer-Encoding: chunked"),
    413,
    "request_too_large",
  ],
  [
    "in parts and not JSON",
    retry(chunked("{"), JSON_BODY, "Transfer-Encoding: chunked"),
    400,
    "invalid_input",
  ],
  ["for a read", { ...get("/lanes", JSON_BODY), body: "{}" }, 400, "invalid_input"],
  [
    "for a delete",
    { method: "DELETE", target: `/documents/${ID}`, headers: [JSON_BODY], body: "{}" },
    400,
    "invalid_input",
  ],
  ["for a pause", { ...post("/lanes/chunks.vector/pause", JSON_BODY), body: "{}" }, 400, "invalid_input"],
];

const WRONG_KEYS: readonly Case[] = [
  ["no key", get("/lanes"), 401, "unauthorized"],
  ["no key, for a HEAD", { method: "HEAD", target: "/lanes" }, 401, "unauthorized"],
  ["no key, for OPTIONS", { method: "OPTIONS", target: "/lanes" }, 401, "unauthorized"],
  ["no key, where nothing is", get("/nothing"), 401, "unauthorized"],
  ["no key, by a wrong method", post("/lanes"), 401, "unauthorized"],
  ["no key, before parameters are looked at", get("/documents?nothing=1"), 401, "unauthorized"],
  ["no key, before the body is looked at", retry("{"), 401, "unauthorized"],
  ["no key, for the documentation", get("/docs"), 401, "unauthorized"],
  ["no key, for OpenAPI", get("/openapi.json"), 401, "unauthorized"],
  ["no key, for metrics", get("/metrics"), 401, "unauthorized"],
  ["no key, for the first page", get("/"), 401, "unauthorized"],
  ["a key in the query", get(`/lanes?api_key=${KEYS.all}`), 401, "unauthorized"],
  ["a key in a cookie", get("/lanes", `Cookie: x-api-key=${KEYS.all}`), 401, "unauthorized"],
  ["a key without Bearer", get("/lanes", `Authorization: ${KEYS.all}`), 401, "unauthorized"],
  ["Basic", get("/lanes", `Authorization: Basic ${btoa(`:${KEYS.all}`)}`), 401, "unauthorized"],
  ["Bearer and nothing", get("/lanes", "Authorization: Bearer "), 401, "unauthorized"],
  [
    "Bearer and two keys",
    get("/lanes", `Authorization: Bearer ${KEYS.all} ${KEYS.all}`),
    401,
    "unauthorized",
  ],
  [
    "two Authorizations",
    get("/lanes", `Authorization: Bearer ${KEYS.all}`, "Authorization: Bearer x"),
    401,
    "unauthorized",
  ],
  [
    "both ways at once",
    get("/lanes", `Authorization: Bearer ${KEYS.all}`, `X-Api-Key: ${KEYS.all}`),
    401,
    "unauthorized",
  ],
  ["a key for the proxy", get("/lanes", `Proxy-Authorization: Bearer ${KEYS.all}`), 401, "unauthorized"],
  [
    "a foreign name and a good key",
    get("/lanes", "Host: evil.test", `X-Api-Key: ${KEYS.all}`),
    403,
    "forbidden",
  ],
  [
    "a foreign origin and a good key",
    get("/lanes", "Origin: http://evil.test", `X-Api-Key: ${KEYS.all}`),
    403,
    "forbidden",
  ],
];

/** Each on a server of its own address bucket: wrong keys are counted. */
const GUESSED: readonly (readonly [name: string, header: string])[] = [
  ["another key", "X-Api-Key: another-key-0123456789"],
  ["a short one", "X-Api-Key: x"],
  ["the beginning of a key", `X-Api-Key: ${KEYS.all.slice(0, -1)}`],
  ["a key and more", `X-Api-Key: ${KEYS.all}x`],
  ["a key in other case", `X-Api-Key: ${KEYS.all.toUpperCase()}`],
  ["a key with its scope before it", `X-Api-Key: read=${KEYS.read}`],
  ["a key twice", `X-Api-Key: ${KEYS.all}, ${KEYS.all}`],
  ["the setting", `Authorization: Bearer read=${KEYS.read},write=${KEYS.write}`],
];

describe("what the server refuses", () => {
  let open: Serving;
  let keyed: Serving;
  before(async () => {
    const settings = { bodyMbMax: 1, allowedHosts: "quarry.test, proxy.test:8443" };
    open = await serveForTest({ settings });
    const { read, write, work, all } = KEYS;
    keyed = await serveForTest({ settings: { apiKey: `read=${read},write=${write},work=${work},${all}` } });
  });
  after(async () => {
    await open.close();
    await keyed.close();
  });

  const refuses = (title: string, serving: () => Serving, cases: readonly Case[]) =>
    describe(title, () => {
      for (const [name, sent, status, code] of cases)
        it(`${name} → ${status} ${code}`, async () => {
          const answer = await sendTo(serving(), sent);
          assertProblem(answer, { status, code, isHead: sent.method === "HEAD" });
        });
    });
  refuses("by Host", () => open, HOSTS);
  refuses("by Origin", () => open, ORIGINS);
  refuses("by Sec-Fetch-Site", () => open, SITES);
  refuses("by method", () => open, METHODS);
  refuses("by path", () => open, PATHS);
  refuses("by query", () => open, QUERIES);
  refuses("by body", () => open, BODIES);
  refuses("by key", () => keyed, WRONG_KEYS);
  for (const [name, header] of GUESSED)
    it(`a guessed key: ${name} → 401 unauthorized`, async () => {
      const answer = await sendTo(keyed, get("/health", header));
      assertProblem(answer, { status: 401, code: "unauthorized" });
    });

  it("a method that a path does not have is answered with those it has", async () => {
    const allowOf = async (sent: Sent) => (await sendTo(open, sent)).headers.allow;
    assert.equal(await allowOf(post("/health")), "GET, HEAD, OPTIONS");
    assert.equal(await allowOf(post(`/documents/${ID}`)), "DELETE, GET, HEAD, OPTIONS");
    assert.equal(await allowOf(get("/lanes/chunks.vector/pause")), "OPTIONS, POST");
    assert.equal(await allowOf({ method: "OPTIONS", target: "/lanes" }), "GET, HEAD, OPTIONS");
  });

  it("wrong fields are named, all of them", async () => {
    const answer = await sendTo(open, get("/documents?limit=0&state=lost"));
    const { errors } = JSON.parse(answer.body);
    assert.deepEqual(errors.map(({ path }: { path: string }) => path).sort(), ["limit", "state"]);
    const unknown = JSON.parse((await sendTo(open, get("/documents?a=1&b=2"))).body);
    assert.deepEqual(
      unknown.errors.map(({ path }: { path: string }) => path),
      ["a", "b"],
    );
    const field = JSON.parse((await sendTo(open, retry('{"nothing":1}'))).body);
    assert.deepEqual(field.errors, [{ path: "nothing", message: "there is no such field" }]);
  });

  const accepted: readonly (readonly [name: string, sent: Sent])[] = [
    ["localhost", get("/lanes", "Host: localhost:PORT")],
    ["localhost in capitals", get("/lanes", "Host: LOCALHOST:PORT")],
    ["IPv6 loopback", get("/lanes", "Host: [::1]:PORT")],
    ["an allowed name", get("/lanes", "Host: quarry.test")],
    ["an allowed name with our port", get("/lanes", "Host: quarry.test:PORT")],
    ["an allowed name with its own port", get("/lanes", "Host: proxy.test:8443")],
    ["our origin", get("/lanes", "Origin: http://127.0.0.1:PORT")],
    ["our origin behind TLS", get("/lanes", "Host: quarry.test", "Origin: https://quarry.test")],
    ["our own page", get("/lanes", "Sec-Fetch-Site: same-origin")],
    ["typed by hand", get("/lanes", "Sec-Fetch-Site: none", ...LINK)],
    ["a link to the documentation", get("/docs", "Sec-Fetch-Site: cross-site", ...LINK)],
    ["a link to the first page", get("/", "Sec-Fetch-Site: same-site", ...LINK)],
    ["a JSON type with a character set", { ...retry("{}", `${JSON_BODY}; charset=UTF-8`) }],
    ["nested 64 deep, and refused for something else", retry(deep(64))],
    ["an empty query", get("/documents?")],
  ];
  for (const [name, sent] of accepted)
    it(`but not: ${name}`, async () => {
      const { status } = await sendTo(open, sent);
      const isRetry = sent.target?.endsWith("/retry");
      assert.ok(isRetry ? [404, 400].includes(status) : status === 200, String(status));
    });
});

async function sendTo(serving: Serving, sent: Sent): Promise<RawAnswer> {
  const { method = "GET", target = "/", headers = [], body = "" } = sent;
  const given = headers
    .filter((header) => header !== "NoHost")
    .map((header) => header.replaceAll("PORT", String(serving.port)));
  const has = (name: string) => headers.some((header) => header.toLowerCase().startsWith(name));
  const lines = [
    `${method} ${target.replace("PORT", String(serving.port))} HTTP/1.1`,
    ...(has("host:") || headers.includes("NoHost") ? [] : [`Host: 127.0.0.1:${serving.port}`]),
    ...given,
    ...(body.length > 0 && !has("content-length:") && !has("transfer-encoding:")
      ? [`Content-Length: ${Buffer.byteLength(body)}`]
      : []),
    "Connection: close",
  ];
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  const [answer] = rawAnswers(await sendRaw(serving.port, Buffer.concat([head, Buffer.from(body)])));
  assert.ok(answer, "the connection was closed without an answer");
  return answer;
}

function assertProblem(
  answer: RawAnswer,
  { status, code, isHead = false }: { status: number; code: ErrorCode; isHead?: boolean },
): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.headers["content-type"], "application/problem+json");
  assert.equal(answer.headers["access-control-allow-origin"], undefined);
  assert.equal(answer.headers["x-content-type-options"], "nosniff");
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.match(answer.headers["content-security-policy"] ?? "", /default-src 'none'/);
  assert.equal(answer.headers["www-authenticate"] !== undefined, status === 401);
  assert.equal(answer.headers.allow !== undefined, status === 405);
  if (isHead) return;
  const { type, title, detail, instance, errors = [], ...rest } = JSON.parse(answer.body);
  assert.deepEqual(rest, { status, code });
  assert.equal(type, `urn:quarry:problem:${code}`);
  assert.equal(instance, answer.headers["x-request-id"]);
  for (const text of [title, detail]) assert.ok(typeof text === "string" && text.length > 0);
  for (const error of errors) assert.deepEqual(Object.keys(error), ["path", "message"]);
  assert.doesNotMatch(answer.body, /node_modules|\.ts:\d|at async|evil/);
}

function chunked(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}
