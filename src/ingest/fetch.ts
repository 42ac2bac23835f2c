import { lookup } from "node:dns/promises";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { dirname } from "node:path";
import { PassThrough, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { isPublicAddress } from "./addresses.ts";
import { ACCEPTED, filenameFor } from "./content-types.ts";

export interface FetchOptions {
  /** The setting QUARRY_FETCH. */
  readonly isFetched: boolean;
  readonly bytesMax: number;
  /** Where to write it. */
  readonly file: string;
  readonly signal: AbortSignal;
  readonly times?: Partial<FetchTimes>;
  /** What stands in for the internet in tests. No setting leads here. */
  readonly network?: Partial<Network>;
}

export interface FetchTimes {
  /** Until a connection stands, encrypted where it has to be. */
  readonly connectMs: number;
  /** Without a single byte. */
  readonly silentMs: number;
  /** For all of it, redirects included. */
  readonly totalMs: number;
}

export interface Network {
  /** Every address of a host. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  readonly isAllowed: (address: string) => boolean;
  readonly ports: readonly number[];
}

export interface Fetched {
  /** A name for it, made from its address and its type. */
  readonly filename: string;
  remove(): Promise<void>;
}

const TIMES: FetchTimes = { connectMs: 10_000, silentMs: 30_000, totalMs: 300_000 };
const INTERNET: Network = {
  resolve: async (host) => (await lookup(host, { all: true, order: "verbatim" })).map((it) => it.address),
  isAllowed: isPublicAddress,
  ports: [80, 443],
};
const REDIRECTS_MAX = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Too early, too much, or the server's own trouble: another time it may work. */
const PASSING = [408, 425, 429, 500, 502, 503, 504];
const DECODERS = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
} as const;

/** A fetch under way. */
interface Fetch extends FetchOptions {
  readonly times: FetchTimes;
  readonly network: Network;
}

/**
 * Fetches a document from the internet, and from nowhere else: whoever can name an address here must not reach what
 * only this machine can. A host's addresses are looked up once, all of them are checked, and the connection goes to
 * those and no others, so that a name cannot mean something else a moment later. Each redirect starts anew.
 */
export async function fetchToFile(address: string, options: FetchOptions): Promise<Fetched> {
  if (!options.isFetched)
    throw new QuarryError(
      "invalid_input",
      "fetching from the internet is not allowed here: set QUARRY_FETCH=true to allow it, or give source_path",
    );
  const times = { ...TIMES, ...options.times };
  const over = AbortSignal.timeout(times.totalMs);
  const signal = AbortSignal.any([options.signal, over]);
  const fetch: Fetch = { ...options, times, signal, network: { ...INTERNET, ...options.network } };
  try {
    const { url, response } = await follow(address, fetch);
    return await save(url, response, fetch);
  } catch (error) {
    options.signal.throwIfAborted();
    if (over.aborted) throw tooSlow(`it was not fetched within ${times.totalMs / 1000} s`);
    throw isQuarryError(error) ? error : unreachable(error);
  }
}

async function follow(address: string, fetch: Fetch): Promise<{ url: URL; response: IncomingMessage }> {
  let url = checkedUrl(address, fetch.network);
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const response = await ask(url, await addressesOf(url, fetch), fetch);
    if (!REDIRECTS.includes(response.statusCode!)) return { url, response };
    response.destroy();
    const { location } = response.headers;
    if (location === undefined)
      throw new QuarryError("file_unreadable", `${shown(url)} leads elsewhere and does not say where`);
    url = checkedUrl(location, fetch.network, url);
  }
  throw new QuarryError(
    "file_unreadable",
    `${shown(url)}: more than ${REDIRECTS_MAX} redirects; give the address that they end at`,
  );
}

function checkedUrl(address: string, { ports }: Network, base?: URL): URL {
  const url = URL.parse(address, base?.href);
  if (!url) throw refused("this is no address", "give one such as https://docs.example.org/guide.html");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw refused(`${url.protocol} addresses are not fetched`, "give one that begins with https: or http:");
  if (url.username !== "" || url.password !== "")
    throw refused("the address has a user or a password in it", "give it without");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (!ports.includes(port)) throw refused(`port ${port} is not asked`, `only ${ports.join(" and ")} are`);
  return url;
}

/** One that is not public spoils all: nobody has both for a good reason. */
async function addressesOf(url: URL, { network, times, signal }: Fetch): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const resolving = isIP(host) ? [host] : network.resolve(host);
  const late = AbortSignal.any([signal, AbortSignal.timeout(times.connectMs)]);
  const addresses = await Promise.race([
    resolving,
    rejectedBy(late, `${host} could not be looked up in time`),
  ]);
  if (addresses.length === 0) throw unreachable(new Error(`${host} has no address`));
  if (!addresses.every((address) => isIP(address) !== 0 && network.isAllowed(address)))
    throw refused(`${host} is not on the public internet`, "give a file on this machine as source_path");
  return addresses;
}

function rejectedBy(signal: AbortSignal, what: string): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => reject(tooSlow(what));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

function ask(url: URL, addresses: readonly string[], { times, signal }: Fetch): Promise<IncomingMessage> {
  const isSecure = url.protocol === "https:";
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (isSecure ? httpsRequest : httpRequest)(url, {
    // The agent that all requests share may go through a proxy that the environment names.
    agent: false,
    lookup: only(addresses),
    // Whatever the environment says about certificates.
    ...(isSecure && { rejectUnauthorized: true }),
    headers: { accept: ACCEPTED, "accept-encoding": "identity", "user-agent": `quarry/${VERSION}` },
    timeout: times.silentMs,
    signal,
  });
  let response: IncomingMessage | undefined;
  // Whoever reads the answer by then is told by the answer.
  const giveUp = (why: string) => (response ?? request).destroy(tooSlow(`${shown(url)}: ${why}`));
  const connecting = setTimeout(
    () => giveUp(`no connection within ${times.connectMs / 1000} s`),
    times.connectMs,
  );
  request
    .once("socket", (socket) =>
      socket.once(isSecure ? "secureConnect" : "connect", () => clearTimeout(connecting)),
    )
    .once("timeout", () => giveUp(`not a word for ${times.silentMs / 1000} s`))
    .once("response", (answer) => {
      response = answer;
      resolve(answer);
    })
    // Stays: a socket may break once more after it was given up.
    .on("error", reject)
    .once("close", () => clearTimeout(connecting))
    .end();
  return promise;
}

/** Instead of a second look-up, which may have another answer. */
function only(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all: isAll }, done) =>
    isAll ? done(null, all) : done(null, all[0]!.address, all[0]!.family);
}

async function save(url: URL, response: IncomingMessage, fetch: Fetch): Promise<Fetched> {
  const { file, bytesMax, signal } = fetch;
  const remove = () => rm(file, { force: true });
  try {
    const filename = checkedAnswer(url, response, bytesMax);
    const decoder = decoderOf(url, response);
    await mkdir(dirname(file), { recursive: true });
    // What an attempt before left behind.
    await remove();
    const target = createWriteStream(file, { flags: "wx" });
    await pipeline(response, decoder, atMostBytes(url, bytesMax), target, { signal });
    return { filename, remove };
  } catch (error) {
    response.destroy();
    await remove();
    throw (error as NodeJS.ErrnoException).code === "ENOSPC"
      ? new QuarryError("disk_full", `no room for what ${shown(url)} holds`, { cause: error })
      : error;
  }
}

/** The name to give it. Throws when it is nothing for us. */
function checkedAnswer(url: URL, { statusCode, headers }: IncomingMessage, bytesMax: number): string {
  if (statusCode !== 200) {
    const isPassing = PASSING.includes(statusCode!);
    throw new QuarryError(
      isPassing ? "address_unavailable" : "file_unreadable",
      `${shown(url)} answered ${statusCode}${isPassing ? "" : ": see that the address is right and open to everybody"}`,
    );
  }
  if (Number(headers["content-length"] ?? 0) > bytesMax) throw tooLarge(url, bytesMax);
  const filename = filenameFor(url, headers["content-type"]);
  if (filename !== undefined) return filename;
  throw new QuarryError(
    "file_unsupported",
    `${shown(url)} is ${headers["content-type"] ?? "of no type that it tells"}; HTML, text, Markdown, JSON, XML, YAML, CSV, PDF and DOCX are taken`,
  );
}

/** Asked for as it is; some servers compress it all the same. */
function decoderOf(url: URL, { headers }: IncomingMessage): Transform {
  const coding = (headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (coding === "identity" || coding === "") return new PassThrough();
  if (Object.hasOwn(DECODERS, coding)) return DECODERS[coding as keyof typeof DECODERS]();
  throw new QuarryError("file_unsupported", `${shown(url)} comes as ${coding}, which was not asked for`);
}

/** Counted as it is written: what a server says beforehand, or packs into little, may be much more. */
function atMostBytes(url: URL, bytesMax: number) {
  return async function* (chunks: AsyncIterable<Buffer>) {
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(url, bytesMax);
      yield chunk;
    }
  };
}

/** Without what may be secret. */
function shown(url: URL): string {
  return url.origin + url.pathname;
}

function refused(why: string, instead: string): QuarryError {
  return new QuarryError("invalid_input", `source_url: ${why}; ${instead}`);
}

function tooLarge(url: URL, bytesMax: number): QuarryError {
  const mb = Math.round(bytesMax / 104_857.6) / 10;
  return new QuarryError(
    "file_too_large",
    `${shown(url)} is larger than ${mb} MB; raise QUARRY_FILE_MB_MAX if that is meant`,
  );
}

function tooSlow(what: string): QuarryError {
  return new QuarryError("timeout", what);
}

function unreachable(error: unknown): QuarryError {
  const { code } = error as NodeJS.ErrnoException;
  // Of several addresses that were tried.
  const why = messageOf(error) || (error instanceof AggregateError && messageOf(error.errors[0])) || code;
  return new QuarryError("address_unavailable", `the address could not be fetched: ${why}`, { cause: error });
}
