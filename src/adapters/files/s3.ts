import { createHash } from "node:crypto";
import { isQuarryError, QuarryError } from "../../errors.ts";
import { Gate } from "../../gate.ts";
import { checkedPath, type FileStore, type StoredFile } from "../files.ts";
import { LocalCopies } from "./local-copies.ts";
import { type S3Access, S3Client } from "./s3-client.ts";
import { Refusal } from "./s3-refusals.ts";
import { parsedS3Url } from "./s3-url.ts";
import { escaped, valueIn, valuesIn } from "./s3-xml.ts";

export interface S3Settings extends Omit<S3Access, "bucket"> {
  /** s3://bucket/prefix */
  readonly url: string;
  /** A folder of this machine, for copies that readers of files need. */
  readonly cacheFolder: string;
  /** Copies that nobody reads are kept up to this size, for the next pages of the same file. */
  readonly cacheBytesMax?: number;
}

/** What is larger is sent in parts of this size, which is all of it that is held in memory. */
export const PART_BYTES = 8 * 1_048_576;
/** Parts grow by as much after each hundred: a thousand of them carry 43 GB. */
const PARTS_OF_ONE_SIZE = 100;
/** Of files that come as streams: each holds a part in memory. */
const UPLOADS_AT_ONCE = 4;
/** S3 takes a thousand, but not every server that speaks its language is done with so many before one loses patience. */
const DELETED_AT_ONCE = 250;
const CACHE_BYTES_MAX = 1_073_741_824;

/** Asks nothing of the server before it is needed: one that is away stops only what needs it. */
export function openS3Files(settings: S3Settings): FileStore {
  return new S3Files(settings);
}

/** An object becomes visible with all its bytes or not at all: that is S3's own promise, for single and multipart uploads. */
class S3Files implements FileStore {
  readonly place: string;
  readonly isRemote = true;
  readonly #prefix: string;
  readonly #client: S3Client;
  readonly #copies: LocalCopies;
  readonly #uploads = new Gate(UPLOADS_AT_ONCE);

  constructor({ url, cacheFolder, cacheBytesMax = CACHE_BYTES_MAX, ...access }: S3Settings) {
    const { bucket, prefix } = parsedS3Url(url);
    this.place = url;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
    this.#client = new S3Client({ ...access, bucket });
    this.#copies = new LocalCopies({ folder: cacheFolder, bytesMax: cacheBytesMax });
  }

  async put(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const key = this.#key(path);
    if (content instanceof Uint8Array) return this.#putWhole(key, content);
    await this.#uploads.through(async () => {
      const parts = inParts(content);
      try {
        const first = await parts.next();
        if (first.done || first.value.isLast)
          return await this.#putWhole(key, first.value?.bytes ?? new Uint8Array());
        return await this.#putInParts(key, first.value.bytes, parts);
      } finally {
        // However it ended, the file behind the stream is closed.
        await parts.return(undefined);
      }
    });
  }

  async read(path: string): Promise<Buffer | undefined> {
    const key = this.#key(path);
    return this.#client.ask({ method: "GET", key }).then(
      ({ bytes }) => bytes,
      (error) => {
        if (isQuarryError(error, "not_found")) return undefined;
        throw error;
      },
    );
  }

  async has(path: string): Promise<boolean> {
    return this.#sizeOf(this.#key(path)).then(
      () => true,
      (error) => {
        if (isQuarryError(error, "not_found")) return false;
        throw error;
      },
    );
  }

  withLocal<T>(file: StoredFile, use: (path: string) => Promise<T>): Promise<T> {
    const key = this.#key(file.path);
    return this.#copies.use(file, (take) => this.#client.download(key, take), use);
  }

  async removeFolder(path: string): Promise<void> {
    const prefix = `${this.#key(path)}/`;
    for (let continuation: string | undefined; ; ) {
      const query = {
        ...{ "list-type": "2", prefix, "max-keys": String(DELETED_AT_ONCE) },
        ...(continuation !== undefined && { "continuation-token": continuation }),
      };
      const list = await this.#client.askFor("ListBucketResult", { method: "GET", query });
      const keys = valuesIn(list, "Key").filter((key) => key.startsWith(prefix));
      if (keys.length > 0) await this.#delete(keys);
      if (valueIn(list, "ListBucketResult", "IsTruncated") !== "true") return;
      continuation = valueIn(list, "ListBucketResult", "NextContinuationToken");
      if (continuation === undefined && keys.length === 0)
        throw new QuarryError(
          "store_failed",
          `${this.place} says that there is more, and not how to ask for it`,
        );
    }
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#copies.close();
  }

  #key(path: string): string {
    return this.#prefix + checkedPath(path);
  }

  async #putWhole(key: string, body: Uint8Array): Promise<void> {
    await this.#client.ask({ method: "PUT", key, body });
  }

  async #putInParts(key: string, first: Uint8Array, others: AsyncIterable<Part>): Promise<void> {
    const begun = "InitiateMultipartUploadResult";
    const answer = await this.#client.askFor(begun, { method: "POST", key, query: { uploads: "" } });
    const uploadId = valueIn(answer, begun, "UploadId") ?? "";
    try {
      const etags: string[] = [];
      let size = 0;
      const send = async (body: Uint8Array) => {
        const query = { partNumber: String(etags.length + 1), uploadId };
        const { headers } = await this.#client.ask({ method: "PUT", key, query, body });
        etags.push(headers.get("etag") ?? "");
        size += body.length;
      };
      await send(first);
      for await (const part of others) await send(part.bytes);
      await this.#complete(key, uploadId, { etags, size });
    } catch (error) {
      // Its parts would be paid for until somebody finds them.
      await this.#client.ask({ method: "DELETE", key, query: { uploadId } }).catch(() => undefined);
      throw error;
    }
  }

  async #complete(key: string, uploadId: string, sent: { etags: string[]; size: number }): Promise<void> {
    const parts = sent.etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
    );
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
    const headers = { "content-type": "application/xml" };
    try {
      const done = "CompleteMultipartUploadResult";
      await this.#client.askFor(done, { method: "POST", key, query: { uploadId }, headers, body });
    } catch (error) {
      // When the answer was lost, the server is asked again and knows no such upload any more.
      const { cause } = error as QuarryError;
      const mayBeDone = cause instanceof Refusal && cause.code === "NoSuchUpload";
      if (!mayBeDone || (await this.#sizeOf(key).catch(() => undefined)) !== sent.size) throw error;
    }
  }

  async #sizeOf(key: string): Promise<number> {
    const { headers } = await this.#client.ask({ method: "HEAD", key });
    return Number(headers.get("content-length"));
  }

  async #delete(keys: readonly string[]): Promise<void> {
    const objects = keys.map((key) => `<Object><Key>${escaped(key)}</Key></Object>`);
    const body = Buffer.from(`<Delete><Quiet>true</Quiet>${objects.join("")}</Delete>`);
    const headers = {
      "content-md5": createHash("md5").update(body).digest("base64"),
      "content-type": "application/xml",
    };
    await this.#client.askFor("DeleteResult", { method: "POST", query: { delete: "" }, headers, body });
  }
}

interface Part {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

/** Cuts a stream into parts that can be sent one by one. An empty stream is one empty part. */
async function* inParts(content: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 0;
  for await (const piece of content) {
    const limit = PART_BYTES * (1 + Math.floor(number / PARTS_OF_ONE_SIZE));
    let rest = piece;
    while (size + rest.length > limit) {
      const fits = limit - size;
      yield { bytes: Buffer.concat([...pieces, rest.subarray(0, fits)]), isLast: false };
      number++;
      pieces = [];
      size = 0;
      rest = rest.subarray(fits);
    }
    pieces.push(rest);
    size += rest.length;
  }
  yield { bytes: Buffer.concat(pieces), isLast: true };
}
