import { RefusedRequest } from "./problem.ts";

const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
/** Deeper than anything meant; what walks a value later may do so by recursion. */
const DEPTH_MAX = 64;

export function hasBody(request: Request): boolean {
  const length = request.headers.get("content-length");
  return request.headers.has("transfer-encoding") || (length !== null && length !== "0");
}

/** The JSON of a body, or undefined where there is none. */
export async function readJson(request: Request, bytesMax: number): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  const { headers } = request;
  if (!JSON_TYPE.test(headers.get("content-type") ?? ""))
    throw new RefusedRequest(
      "request_unsupported",
      "send the body as content-type: application/json, in UTF-8",
    );
  if ((headers.get("content-encoding") ?? "identity") !== "identity")
    throw new RefusedRequest("request_unsupported", "send the body as it is: it is not decompressed here");
  const text = decoded(await readBytes(request, bytesMax));
  refuseDepth(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new RefusedRequest("invalid_input", "the body is not valid JSON");
  }
}

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > bytesMax) throw tooLarge(bytesMax);
    // The parser of HTTP hands over no more than was declared.
    return new Uint8Array(await whole(() => request.arrayBuffer()));
  }
  return whole(() => counted(request, bytesMax));
}

async function counted(request: Request, bytesMax: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of request.body ?? []) {
    bytes += part.byteLength;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** A caller that goes away, or breaks the chunks, is no fault of ours. */
async function whole<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof RefusedRequest) throw error;
    throw new RefusedRequest("invalid_input", "the body ended before it was complete");
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new RefusedRequest("invalid_input", "the body is not valid UTF-8");
  }
}

function refuseDepth(text: string): void {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isInText) {
      if (char === "\\") at += 1;
      else if (char === '"') isInText = false;
    } else if (char === '"') isInText = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
    if (depth > DEPTH_MAX)
      throw new RefusedRequest("invalid_input", `the body is nested more than ${DEPTH_MAX} deep`);
  }
}

function tooLarge(bytesMax: number): RefusedRequest {
  return new RefusedRequest(
    "request_too_large",
    `the body is larger than ${bytesMax / 1_048_576} MB; send less at a time, or raise QUARRY_BODY_MB_MAX`,
    // The rest of the body is not read, so the connection is of no further use.
    { headers: { connection: "close" } },
  );
}
