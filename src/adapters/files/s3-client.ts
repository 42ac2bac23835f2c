import { createHash } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { type Clock, pause } from "../../clock.ts";
import { isQuarryError } from "../../errors.ts";
import { explained, isWorthAnotherTry, LineTrouble, Refusal } from "./s3-refusals.ts";
import { valueIn } from "./s3-xml.ts";

export interface S3Access {
  readonly bucket: string;
  /** Of a server other than AWS's own, which is asked by path: http(s)://host[:port] */
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly clock: Clock;
  /** How long the server may be silent. */
  readonly silentMs?: number;
}

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** None: the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface S3Answer {
  readonly bytes: Buffer;
  readonly headers: Headers;
}

const SILENT_MS = 20_000;
/** Slower than this, an upload is taken for one that hangs. */
const UPLOAD_BYTES_PER_S_MIN = 100_000;
const TRIES_MAX = 4;
const FIRST_PAUSE_MS = 100;

/** Asks one bucket: signed, with the hash of what is sent, and again when the server stumbles. */
export class S3Client {
  readonly #access: S3Access;
  readonly #base: string;
  /** The host as people know it, and as it stands in what they are told. */
  readonly host: string;
  readonly #signingKeys = new Map<string, ArrayBuffer>();
  readonly #closing = new AbortController();

  constructor(access: S3Access) {
    this.#access = access;
    const { bucket, endpoint, region } = access;
    this.#base = endpoint ? `${endpoint.replace(/\/+$/, "")}/${bucket}` : awsUrl(bucket, region);
    this.host = new URL(this.#base).host;
  }

  /** The whole answer. A key that is not there is `not_found`. */
  ask(request: S3Request): Promise<S3Answer> {
    return this.#tried(request, answerOf);
  }

  /** A document of this name, or of an error: a server that works for long says 200 first and later how it went. */
  askFor(name: string, request: S3Request): Promise<string> {
    return this.#tried(request, async (response, patience) => {
      const text = (await answerOf(response, patience)).bytes.toString();
      const error = valueIn(text, "Error", "Code");
      if (error === undefined && text.includes(`<${name}`)) return text;
      throw new Refusal(response.status, error ?? "");
    });
  }

  /** Hands the answer on as it comes. What `take` has seen of a try that failed, it is given again from the start. */
  download<T>(key: string, take: (bytes: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T> {
    return this.#tried({ method: "GET", key }, (response, patience) => take(bodyOf(response, patience)));
  }

  close(): void {
    this.#closing.abort();
  }

  async #tried<T>(
    request: S3Request,
    use: (response: Response, patience: Patience) => Promise<T>,
  ): Promise<T> {
    const { clock, silentMs = SILENT_MS } = this.#access;
    const startedAt = clock.monotonic();
    for (let tries = 1; ; tries++) {
      try {
        return await this.#once(request, use);
      } catch (error) {
        if (isQuarryError(error)) throw error;
        const isEnough = tries >= TRIES_MAX || clock.monotonic() - startedAt >= silentMs;
        if (isEnough || this.#closing.signal.aborted || !isWorthAnotherTry(error))
          throw explained(error, { host: this.host, bucket: this.#access.bucket, key: request.key });
        await pause(FIRST_PAUSE_MS * 4 ** (tries - 1) * (0.5 + Math.random()), this.#closing.signal);
      }
    }
  }

  async #once<T>(
    request: S3Request,
    use: (response: Response, patience: Patience) => Promise<T>,
  ): Promise<T> {
    const { silentMs = SILENT_MS } = this.#access;
    const uploadMs = ((request.body?.length ?? 0) / UPLOAD_BYTES_PER_S_MIN) * 1_000;
    using patience = new Patience(silentMs, this.#closing.signal);
    patience.wait(silentMs + uploadMs);
    const { url, headers } = await this.#signed(request);
    const response = await fetch(url, {
      method: request.method,
      headers,
      ...(request.body && { body: request.body as Uint8Array<ArrayBuffer> }),
      redirect: "manual",
      signal: patience.signal,
    });
    patience.wait();
    // Of an object S3 says its tag. Whatever else answers, such as the page that a network wants to be signed in on, does not.
    const isOfObject = request.key !== undefined && /^(PUT|GET|HEAD)$/.test(request.method);
    if (response.ok && (!isOfObject || response.headers.has("etag"))) return await use(response, patience);
    const text = await response.text();
    const code = request.method === "HEAD" && response.status === 404 ? "NoSuchKey" : "";
    throw new Refusal(response.status, valueIn(text, "Error", "Code") ?? code, {
      region: response.headers.get("x-amz-bucket-region") ?? valueIn(text, "Error", "Region"),
    });
  }

  #signed({ method, key, query, headers, body }: S3Request) {
    const { region, accessKeyId, secretAccessKey, sessionToken, clock } = this.#access;
    const url = new URL(key === undefined ? this.#base : `${this.#base}/${key}`);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    return new AwsV4Signer({
      ...{ method, url: url.href, service: "s3", region, accessKeyId, secretAccessKey },
      ...(sessionToken !== undefined && { sessionToken }),
      headers: { ...headers, "x-amz-content-sha256": sha256(body ?? "") },
      cache: this.#signingKeys,
      datetime: new Date(clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, ""),
    }).sign();
  }
}

/** Aborts a request whose server has been silent for too long. */
class Patience {
  readonly signal: AbortSignal;
  readonly #silentMs: number;
  readonly #over = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(silentMs: number, closing: AbortSignal) {
    this.#silentMs = silentMs;
    this.signal = AbortSignal.any([this.#over.signal, closing]);
  }

  wait(ms = this.#silentMs): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#over.abort(new LineTrouble(`no answer within ${Math.round(ms / 1_000)} s`)),
      ms,
    );
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

async function answerOf(response: Response, patience: Patience): Promise<S3Answer> {
  const parts: Uint8Array[] = [];
  for await (const part of bodyOf(response, patience)) parts.push(part);
  return { bytes: Buffer.concat(parts), headers: response.headers };
}

async function* bodyOf(response: Response, patience: Patience): AsyncGenerator<Uint8Array> {
  const expected = response.headers.get("content-length");
  let received = 0;
  for await (const bytes of response.body ?? []) {
    patience.wait();
    received += bytes.length;
    yield bytes;
  }
  if (expected !== null && response.body && received !== Number(expected))
    throw new LineTrouble(`${received} of ${expected} bytes came`);
}

/** AWS's certificate is good for one name before the host, so a bucket with dots is asked by path. */
function awsUrl(bucket: string, region: string): string {
  const host = `s3.${region}.amazonaws.com`;
  return bucket.includes(".") ? `https://${host}/${bucket}` : `https://${bucket}.${host}`;
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
