import { isIPv6 } from "node:net";

const PORT = "11434";

/**
 * The address that Ollama's own programs would read in OLLAMA_HOST: "", ":11434", "box", "box:1234", "::1" and
 * "https://box/path" are all fine. Without a scheme the port is Ollama's own.
 */
export function ollamaUrl(host: string): string {
  const given = host.trim().replace(/\/+$/, "");
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given)) return reachable(given);
  const [, name = "", path = ""] = /^([^/]*)(.*)$/s.exec(given)!;
  return reachable(`http://${withPort(name)}${path}`);
}

function withPort(name: string): string {
  if (isIPv6(name)) return `[${name}]:${PORT}`;
  if (name === "" || name.startsWith(":")) return `127.0.0.1${name || `:${PORT}`}`;
  return /:\d+$/.test(name) ? name : `${name}:${PORT}`;
}

/** Where a server listens on all addresses, it is found on the machine's own. */
function reachable(url: string): string {
  return url.replace(/^(\w+:\/\/)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)/, "$1127.0.0.1");
}
