import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { isPublicAddress } from "../../src/ingest/addresses.ts";
import { filenameFor } from "../../src/ingest/content-types.ts";
import { type FetchOptions, fetchToFile, type Network } from "../../src/ingest/fetch.ts";

const NOT_PUBLIC = [
  ..."0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1".split(
    " ",
  ),
  ..."127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255".split(" "),
  ..."192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1".split(" "),
  ..."198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255".split(" "),
  ...":: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 ::ffff:0:127.0.0.1".split(" "),
  ..."64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1::1 2001:db8::1".split(" "),
  ..."2002:7f00:1:: 2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo".split(" "),
  ..."fec0::1 ff02::1 ffff::1 4000::1 2606:4700::1111%eth0".split(" "),
  ..."localhost 1 127.1 0x7f.1".split(" "),
  "",
];
const PUBLIC =
  "1.1.1.1 8.8.8.8 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 168.63.129.17 169.253.255.255 172.15.255.255 172.32.0.1 192.167.1.1 192.169.0.1 198.17.0.1 198.20.0.1 223.255.255.255 2001:4860:4860::8888 2606:4700::1111 2a00:1450::1 2003::1".split(
    " ",
  );

/** Addresses that must be refused before anything is sent, and the word that tells why. */
const REFUSED: readonly (readonly [url: string, why: RegExp])[] = [
  ["http://127.0.0.1/", /public/],
  ["http://127.1/", /public/],
  ["http://127.0.1/", /public/],
  ["http://2130706433/", /public/],
  ["http://017700000001/", /public/],
  ["http://0x7f000001/", /public/],
  ["http://0x7f.0.0.1/", /public/],
  ["http://0177.0.0.01/", /public/],
  ["http://0x7f.1/", /public/],
  ["http://0/", /public/],
  ["http://0.0.0.0/", /public/],
  ["http://[::]/", /public/],
  ["http://[::1]/", /public/],
  ["http://[0:0:0:0:0:0:0:1]/", /public/],
  ["http://[::ffff:127.0.0.1]/", /public/],
  ["http://[::ffff:7f00:1]/", /public/],
  ["http://[::127.0.0.1]/", /public/],
  ["http://[64:ff9b::127.0.0.1]/", /public/],
  ["http://[2002:7f00:1::]/", /public/],
  ["http://[fe80::1]/", /public/],
  ["http://[fe80::1%25lo]/", /no address|public/],
  ["http://[fd00:ec2::254]/latest/meta-data/", /public/],
  ["http://169.254.169.254/latest/meta-data/", /public/],
  ["http://0xa9fea9fe/", /public/],
  ["http://2852039166/", /public/],
  ["http://100.100.100.200/", /public/],
  ["http://168.63.129.16/", /public/],
  ["http://10.1.2.3/", /public/],
  ["http://192.168.1.1/", /public/],
  ["http://127。0。0。1/", /public/],
  ["http://127.0.0。1/", /public/],
  ["http://①②⑦.⓪.⓪.①/", /public/],
  ["http://%31%32%37.0.0.1/", /public/],
  ["http://127.0.0.1./", /public/],
  ["http:\\\\127.0.0.1\\", /public/],
  ["http:127.0.0.1", /public/],
  ["http:///127.0.0.1", /public/],
  ["\thttp://127.0.0.1/\n", /public/],
  ["HTTP://127.0.0.1/", /public/],
  ["http://localhost/", /public/],
  ["http://localhost./", /public/],
  ["http://LOCALHOST/", /public/],
  ["http://ｌｏｃａｌｈｏｓｔ/", /public/],
  ["http://private.example/", /public/],
  ["http://mixed.example/", /public/],
  ["http://mapped.example/", /public/],
  ["http://metadata.example/", /public/],
  ["http://garbage.example/", /public/],
  ["http://user@public.example/", /user or a password/],
  ["http://user:secret@public.example/", /user or a password/],
  ["http://:secret@public.example/", /user or a password/],
  ["http://public.example@127.0.0.1/", /user or a password/],
  ["http://public.example:80@127.0.0.1/", /user or a password/],
  ["http://public.example:22/", /port 22/],
  ["http://public.example:8080/", /port 8080/],
  ["https://public.example:6379/", /port 6379/],
  ["http://public.example:0/", /port 0/],
  ["http://public.example:99999/", /no address/],
  ["ftp://public.example/", /ftp:/],
  ["file:///etc/passwd", /file:/],
  ["file://public.example/etc/passwd", /file:/],
  ["gopher://public.example/", /gopher:/],
  ["data:text/html,x", /data:/],
  ["javascript:1", /javascript:/],
  ["ws://public.example/", /ws:/],
  ["blob:http://public.example/1", /blob:/],
  ["//public.example/", /no address/],
  ["/etc/passwd", /no address/],
  ["public.example", /no address/],
  ["", /no address/],
  ["http://", /no address/],
  ["http://a b/", /no address/],
  ["http://1.2.3.4.5/", /no address/],
  ["http://256.1.1.1/", /no address/],
];
const NAMES: Readonly<Record<string, readonly string[]>> = {
  localhost: ["127.0.0.1", "::1"],
  "localhost.": ["127.0.0.1"],
  "private.example": ["192.168.7.7"],
  "mixed.example": ["1.1.1.1", "10.0.0.1"],
  "mapped.example": ["::ffff:1.1.1.1"],
  "metadata.example": ["169.254.169.254"],
  "garbage.example": ["not-an-address"],
  "nowhere.example": [],
};

describe("addresses", () => {
  it("are public or not", () => {
    for (const address of NOT_PUBLIC) assert.equal(isPublicAddress(address), false, address);
    for (const address of PUBLIC) assert.equal(isPublicAddress(address), true, address);
  });
});

describe("names of what was fetched", () => {
  it("come from the address, with an extension that fits the type", () => {
    const named: [url: string, type: string | undefined, name: string | undefined][] = [
      ["http://a.example/guide/intro.html", "text/html; charset=utf-8", "intro.html"],
      ["http://a.example/index.php?x=../../y", "TEXT/HTML", "index.html"],
      ["http://a.example/", "text/html", "a.example.html"],
      ["http://a.example/docs/v2/", "text/markdown", "v2.md"],
      ["http://a.example/README.md", "text/plain", "README.md"],
      ["http://a.example/LICENSE", "text/plain", "LICENSE.txt"],
      ["http://a.example/mod.rs", "text/x-rust", "mod.rs"],
      ["http://a.example/book", "application/pdf", "book.pdf"],
      ["http://a.example/api", "application/vnd.oai.openapi+json;version=3.0", "api.json"],
      ["http://a.example/feed", "application/atom+xml", "feed.xml"],
      ["http://a.example/..%2f..%2fetc%2fpasswd", "text/plain", "etc-passwd.txt"],
      ["http://a.example/%00%0a%1b[31m.html", "text/html", "31m.html"],
      ["http://a.example/.htaccess", "text/plain", "htaccess.txt"],
      ["http://a.example/%E2%80%AEfdp.exe", "text/html", "fdp.html"],
      ["http://a.example/%ff", "text/html", "ff.html"],
      ["http://a.example/Übersicht.html", "text/html", "Übersicht.html"],
      [`http://a.example/${"x".repeat(400)}.html`, "text/html", `${"x".repeat(100)}.html`],
      ["http://a.example/x.zip", "application/zip", undefined],
      ["http://a.example/x.html", "application/octet-stream", undefined],
      ["http://a.example/x.png", "image/png", undefined],
      ["http://a.example/x.mp4", "video/mp4", undefined],
      ["http://a.example/x", "text/event-stream", undefined],
      ["http://a.example/x", "multipart/form-data", undefined],
      ["http://a.example/x.html", undefined, undefined],
      ["http://a.example/x.html", "", undefined],
    ];
    for (const [url, type, name] of named) assert.equal(filenameFor(new URL(url), type), name, url);
  });
});

describe("fetching", () => {
  let folder: string;
  let server: Server;
  let port: number;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  const asked: string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-fetch-"));
    server = createServer((request, response) => {
      asked.push(`${request.headers.host} ${request.url}`);
      answer(request, response);
    });
    port = await listen(server);
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Everything that has no other address here is our server. */
  const network = (more: Partial<Network> = {}): Partial<Network> => ({
    resolve: async (host) => NAMES[host] ?? ["127.0.0.1"],
    isAllowed: (address) => address === "127.0.0.1" || isPublicAddress(address),
    ports: [80, 443, port],
    ...more,
  });
  const fetched = (url: string, more: Partial<FetchOptions> = {}) =>
    fetchToFile(url, {
      isFetched: true,
      bytesMax: 100_000,
      file: join(folder, "deep", "download"),
      signal: new AbortController().signal,
      network: network(),
      ...more,
    });
  const at = (path: string, host = "docs.example") => `http://${host}:${port}${path}`;
  const html =
    (text: string, headers = {}) =>
    (_: unknown, response: ServerResponse) =>
      response.writeHead(200, { "content-type": "text/html", ...headers }).end(text);
  const text = async ({ filename, remove }: Awaited<ReturnType<typeof fetchToFile>>) => {
    const content = await readFile(join(folder, "deep", "download"), "utf8");
    await remove();
    return [filename, content];
  };
  const leavesNothing = async () => assert.deepEqual(await readdir(join(folder, "deep")).catch(() => []), []);

  it("is refused unless the setting allows it", async () => {
    await assert.rejects(fetched(at("/"), { isFetched: false }), {
      code: "invalid_input",
      message: /QUARRY_FETCH=true/,
    });
    assert.deepEqual(asked, []);
  });

  it("refuses what is not on the internet, however it is written", async () => {
    for (const [url, message] of REFUSED) {
      const network: Partial<Network> = { resolve: async (host) => NAMES[host] ?? ["1.1.1.1"] };
      await assert.rejects(fetched(url, { network }), { code: "invalid_input", message }, url);
    }
    await assert.rejects(
      fetched("http://user:secret@a.example/"),
      (error: Error) => !/secret/.test(error.message),
    );
    assert.deepEqual(asked, []);
    await leavesNothing();
  });

  it("refuses this machine's own name without any help from a test", async () => {
    await assert.rejects(
      fetchToFile("http://localhost/", {
        isFetched: true,
        bytesMax: 10,
        file: join(folder, "deep", "download"),
        signal: new AbortController().signal,
      }),
      { code: "invalid_input", message: /localhost is not on the public internet/ },
    );
  });

  it("writes the document and names it", async () => {
    asked.length = 0;
    answer = html("<h1>Guide</h1>");
    assert.deepEqual(await text(await fetched(at("/guide/intro.html?v=1#top"))), [
      "intro.html",
      "<h1>Guide</h1>",
    ]);
    assert.deepEqual(asked, [`docs.example:${port} /guide/intro.html?v=1`]);
    await leavesNothing();
  });

  it("sends nothing that tells more than needed", async () => {
    let headers: IncomingMessage["headers"] = {};
    answer = (request, response) => {
      headers = request.headers;
      html("x")(request, response);
    };
    await text(await fetched(at("/")));
    assert.deepEqual(Object.keys(headers).sort(), [
      "accept",
      "accept-encoding",
      "connection",
      "host",
      "user-agent",
    ]);
  });

  it("overwrites what an attempt before left behind", async () => {
    answer = html("new");
    await text(await fetched(at("/")));
    await writeFile(join(folder, "deep", "download"), "left behind, and longer");
    assert.deepEqual((await text(await fetched(at("/x.html"))))[1], "new");
  });

  it("looks a name up once, so that it cannot mean another address a moment later", async () => {
    let lookups = 0;
    const rebinding = network({
      isAllowed: (address) => address === "127.0.0.1",
      resolve: async () => (lookups++ === 0 ? ["127.0.0.1"] : ["127.0.0.66"]),
    });
    answer = html("safe");
    assert.deepEqual(await text(await fetched(at("/a.html", "rebind.example"), { network: rebinding })), [
      "a.html",
      "safe",
    ]);
    assert.equal(lookups, 1);
    await assert.rejects(fetched(at("/a.html", "rebind.example"), { network: rebinding }), {
      code: "invalid_input",
    });
  });

  it("checks every address of a name", async () => {
    for (const addresses of [
      ["127.0.0.1", "10.0.0.1"],
      ["10.0.0.1", "127.0.0.1"],
      ["127.0.0.1", "::1"],
    ])
      await assert.rejects(fetched(at("/"), { network: network({ resolve: async () => addresses }) }), {
        code: "invalid_input",
      });
  });

  it("follows redirects, each checked like the first", async () => {
    asked.length = 0;
    answer = (request, response) => {
      if (request.url === "/old") response.writeHead(302, { location: "/newer" }).end();
      else if (request.url === "/newer")
        response.writeHead(308, { location: `//other.example:${port}/manual/` }).end();
      else html("there")(request, response);
    };
    assert.deepEqual(await text(await fetched(at("/old"))), ["manual.html", "there"]);
    assert.deepEqual(asked, [
      `docs.example:${port} /old`,
      `docs.example:${port} /newer`,
      `other.example:${port} /manual/`,
    ]);
  });

  it("does not follow a redirect to where it may not go", async () => {
    for (const [location, why] of [
      ...REFUSED.filter(([url]) => /^[a-z]+:/i.test(url)),
      [`http://private.example:${port}/`, /public/] as const,
      [`//private.example:${port}/`, /public/] as const,
      [`http://[::ffff:127.0.0.1]:${port}/`, /public/] as const,
    ]) {
      // A header takes ASCII only, and "http:host" is relative to a page of the same scheme.
      if (/[^\x20-\x7e]/.test(location) || location === "http:127.0.0.1") continue;
      asked.length = 0;
      answer = (_, response) => void response.writeHead(302, { location }).end();
      let hops = 0;
      const isAllowed = (address: string) => hops++ === 0 || isPublicAddress(address);
      await assert.rejects(fetched(at("/"), { network: network({ isAllowed }) }), {
        code: "invalid_input",
        message: why,
      });
      assert.equal(asked.length, 1, location);
    }
  });

  it("gives up on redirects that go round, and on one that leads nowhere", async () => {
    asked.length = 0;
    answer = (_, response) => void response.writeHead(301, { location: "/again" }).end();
    await assert.rejects(fetched(at("/")), { code: "file_unreadable", message: /more than 5 redirects/ });
    assert.equal(asked.length, 6);
    answer = (_, response) => void response.writeHead(301).end();
    await assert.rejects(fetched(at("/")), { code: "file_unreadable", message: /does not say where/ });
  });

  it("stops at the size limit, announced, unannounced or packed", async () => {
    const many = "x".repeat(200_000);
    const answers = [
      html(many, { "content-length": many.length }),
      html(many, { "transfer-encoding": "chunked" }),
      html(gzipSync(many) as never, { "content-encoding": "gzip" }),
      html(brotliCompressSync(many) as never, { "content-encoding": "br" }),
      // It never ends.
      (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/html" });
        const writing = setInterval(() => {
          if (response.destroyed) clearInterval(writing);
          else response.write(many);
        }, 1);
      },
    ];
    for (const one of answers) {
      answer = one;
      await assert.rejects(fetched(at("/")), { code: "file_too_large", message: /QUARRY_FILE_MB_MAX/ });
      await leavesNothing();
    }
    answer = html("y".repeat(100_000));
    assert.equal((await text(await fetched(at("/"))))[1]!.length, 100_000);
  });

  it("unpacks what comes packed although it was asked for as it is", async () => {
    answer = html(gzipSync("packed") as never, { "content-encoding": "gzip" });
    assert.deepEqual((await text(await fetched(at("/"))))[1], "packed");
    answer = html("?", { "content-encoding": "compress" });
    await assert.rejects(fetched(at("/")), { code: "file_unsupported" });
    answer = html("no gzip at all", { "content-encoding": "gzip" });
    await assert.rejects(fetched(at("/")), { code: "address_unavailable" });
    await leavesNothing();
  });

  it("takes documents only", async () => {
    for (const type of [
      "application/octet-stream",
      "image/png",
      "application/zip",
      "text/event-stream",
      "",
    ]) {
      answer = html("x", { "content-type": type });
      await assert.rejects(fetched(at("/x.html")), { code: "file_unsupported", message: /Markdown/ });
    }
  });

  it("tells what may pass from what stays", async () => {
    const codes: [status: number, code: string][] = [
      ...[400, 401, 403, 404, 410, 451, 204, 206, 304, 501].map(
        (it) => [it, "file_unreadable"] as [number, string],
      ),
      ...[408, 425, 429, 500, 502, 503, 504].map((it) => [it, "address_unavailable"] as [number, string]),
    ];
    for (const [status, code] of codes) {
      answer = (_, response) => void response.writeHead(status, { "content-type": "text/html" }).end();
      await assert.rejects(
        fetched(at("/")),
        { code, message: new RegExp(`answered ${status}`) },
        String(status),
      );
    }
    const closed = createTcpServer();
    const closedPort = await listen(closed);
    closed.close();
    await once(closed, "close");
    await assert.rejects(
      fetched(`http://docs.example:${closedPort}/`, { network: network({ ports: [closedPort] }) }),
      { code: "address_unavailable", message: /ECONNREFUSED/ },
    );
    const noName = async () => {
      throw Object.assign(new Error("getaddrinfo EAI_AGAIN docs.example"), { code: "EAI_AGAIN" });
    };
    await assert.rejects(fetched(at("/"), { network: network({ resolve: noName }) }), {
      code: "address_unavailable",
      message: /EAI_AGAIN/,
    });
    await assert.rejects(fetched(at("/", "nowhere.example")), { code: "address_unavailable" });
  });

  it("an answer that is cut off is no document", async () => {
    const cuts = [
      html("only a part", { "content-length": 5_000 }),
      (_: unknown, response: ServerResponse) =>
        void response.writeHead(200, { "content-type": "text/html" }).write("only a part"),
    ];
    for (const one of cuts) {
      answer = (request, response) => {
        one(request, response);
        setTimeout(() => request.socket.destroy(), 20);
      };
      await assert.rejects(fetched(at("/")), { code: "address_unavailable" });
      await leavesNothing();
    }
    answer = (request) => void request.socket.destroy();
    await assert.rejects(fetched(at("/")), { code: "address_unavailable" });
    answer = (request) => void request.socket.end("SSH-2.0-OpenSSH\r\n");
    await assert.rejects(fetched(at("/")), { code: "address_unavailable" });
  });

  it("does not wait for a server that says nothing, stops half-way or dribbles", async () => {
    const start = (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/html" }).write("x");
    };
    answer = () => undefined;
    await assert.rejects(fetched(at("/"), { times: { silentMs: 50 } }), {
      code: "timeout",
      message: /not a word/,
    });
    answer = (_, response) => start(response);
    await assert.rejects(fetched(at("/"), { times: { silentMs: 50 } }), { code: "timeout" });
    answer = (_, response) => {
      start(response);
      const dribbling = setInterval(
        () => (response.destroyed ? clearInterval(dribbling) : response.write("x")),
        5,
      );
    };
    await assert.rejects(fetched(at("/"), { times: { totalMs: 100 } }), {
      code: "timeout",
      message: /within 0.1 s/,
    });
    await leavesNothing();
    const never = () => new Promise<never>(() => undefined);
    await assert.rejects(
      fetched(at("/"), { times: { connectMs: 50 }, network: network({ resolve: never }) }),
      {
        code: "timeout",
        message: /looked up/,
      },
    );
  });

  it("does not wait for a handshake that never comes, and names the host in it", async () => {
    const hellos: string[] = [];
    const mute: TcpServer = createTcpServer((socket) => {
      socket.on("data", (bytes) => hellos.push(bytes.toString("latin1"))).on("error", () => undefined);
    });
    const mutePort = await listen(mute);
    await assert.rejects(
      fetched(`https://secure.example:${mutePort}/`, {
        times: { connectMs: 200 },
        network: network({ ports: [mutePort] }),
      }),
      { code: "timeout", message: /no connection/ },
    );
    assert.match(hellos.join(""), /secure\.example/);
    mute.close();
  });

  it("ends at once when it is told to", async () => {
    const stop = new AbortController();
    answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/html" }).write("x");
      stop.abort(new Error("no longer wanted"));
    };
    await assert.rejects(fetched(at("/"), { signal: stop.signal }), /no longer wanted/);
    await assert.rejects(fetched(at("/"), { signal: stop.signal }), /no longer wanted/);
    await leavesNothing();
  });

  it("goes past the proxy that the environment names", async () => {
    answer = html("directly");
    const program = `
      import { fetchToFile } from ${JSON.stringify(new URL("../../src/ingest/fetch.ts", import.meta.url).href)};
      const network = { resolve: async () => ["127.0.0.1"], isAllowed: () => true, ports: [${port}] };
      const signal = new AbortController().signal;
      const { filename } = await fetchToFile(${JSON.stringify(at("/x.html"))}, { isFetched: true, bytesMax: 100, file: ${JSON.stringify(join(folder, "past-proxy"))}, signal, network });
      console.log(filename);`;
    const proxy = "http://127.0.0.1:9";
    const env = {
      ...process.env,
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: proxy,
      http_proxy: proxy,
      NO_PROXY: "",
      no_proxy: "",
    };
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      env,
    });
    assert.equal(stdout, "x.html\n");
  });
});

async function listen(server: TcpServer): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
