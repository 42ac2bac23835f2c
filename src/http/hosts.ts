import { isIP } from "node:net";
import { RefusedRequest } from "./problem.ts";

/** The socket that a request came by: the only thing about the network that is believed. */
export interface Peer {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly localPort: number;
}

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];
const HTTP_PORT = 80;

/**
 * Names under which the server may be asked. A page elsewhere can have its own name point here (DNS rebinding), so
 * only names that are surely ours are answered, for reads too.
 */
export class AllowedHosts {
  readonly #named: ReadonlySet<string>;

  /** @param listed names of QUARRY_ALLOWED_HOSTS, joined by commas; one without a port stands for any port of ours. */
  constructor(listed: string | undefined) {
    const names = (listed ?? "").split(",").map((name) => name.trim().toLowerCase());
    this.#named = new Set(names.filter(Boolean));
  }

  check(host: string | null, peer: Peer): void {
    if (host === null || host === "" || host.includes(","))
      throw new RefusedRequest("invalid_input", "a request needs exactly one Host header");
    if (this.#isNamed(host, peer.localPort) || isOwn(host, peer)) return;
    throw new RefusedRequest(
      "forbidden",
      "the server is not known under the name in the Host header; add it to QUARRY_ALLOWED_HOSTS if it is right",
    );
  }

  /** Whoever sends an Origin is a page; only our own may. A name of the list may stand behind a proxy that speaks TLS. */
  checkOrigin(origin: string | null, host: string, peer: Peer): void {
    if (origin === null) return;
    const own = [`http://${host.toLowerCase()}`];
    if (this.#isNamed(host, peer.localPort)) own.push(`https://${host.toLowerCase()}`);
    if (own.includes(origin)) return;
    throw new RefusedRequest("forbidden", "pages of other origins may not ask this server");
  }

  #isNamed(host: string, port: number): boolean {
    const name = host.toLowerCase();
    return (
      this.#named.has(name) ||
      (name.endsWith(`:${port}`) && this.#named.has(name.slice(0, -`:${port}`.length)))
    );
  }
}

/** Loopback names and the address that the connection really came in by, each with the right port. */
function isOwn(host: string, { localAddress, localPort }: Peer): boolean {
  const own = [...LOOPBACK_NAMES, inHost(localAddress)];
  const name = host.toLowerCase();
  return own.some((each) => name === `${each}:${localPort}` || (localPort === HTTP_PORT && name === each));
}

function inHost(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  return isIP(plain) === 6 ? `[${plain}]` : plain;
}

/** Browsers say where a request comes from. Another site may link to our pages, and nothing else. */
export function checkFetchSite(headers: Headers, isPage: boolean): void {
  const site = headers.get("sec-fetch-site");
  if (site === null || site === "same-origin" || site === "none") return;
  const isFollowedLink =
    headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
  if (isPage && isFollowedLink) return;
  throw new RefusedRequest("forbidden", "pages of other sites may not ask this server");
}

/** 127.0.0.0/8, ::1 and localhost. */
export function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host === "::1" ||
    host === "[::1]" ||
    (isIP(host) === 4 && host.startsWith("127."))
  );
}
