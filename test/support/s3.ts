import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { AwsClient } from "aws4fetch";
import { externalServer, findOrInstall, Guardian, reachable, type Server, startServer } from "./services.ts";

export interface S3Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface S3Server extends Server, S3Keys {}

export interface TestBucket extends S3Keys {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  /** Settings of a Quarry that keeps its files there. */
  readonly settings: {
    readonly filesUrl: string;
    readonly s3Endpoint: string;
    readonly s3AccessKeyId: string;
    readonly s3SecretAccessKey: string;
  };
  /** The same for a process. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the objects below a prefix, as anybody sees them. */
  list(prefix?: string): Promise<string[]>;
  /** Multipart uploads that were begun and neither completed nor aborted. */
  uploads(): Promise<string[]>;
  /** As any other tool would. */
  put(key: string, body: string): Promise<void>;
  copy(from: string, to: string): Promise<void>;
}

const REGION = "us-east-1";
const SERVER = join(import.meta.dirname, "../servers/s3/server.py");
/** Where Debian puts what it installs, whatever other Python comes first on the PATH. */
const PYTHON = "/usr/bin/python3";
const SWIFT = "/usr/lib/python3/dist-packages/swift/common/middleware/s3api";

let own: Promise<S3Server> | undefined;

/** An empty bucket of its own for a test, on the server that serves all test files. */
export async function freshBucket(): Promise<TestBucket> {
  own ??= openS3();
  return bucketAt(await own);
}

/** The server of TEST_S3_URL where that is set, with TEST_S3_KEY (ID:SECRET), else a private one. */
export async function openS3(): Promise<S3Server> {
  const url = process.env.TEST_S3_URL;
  if (!url) return startS3();
  const [, accessKeyId = "", secretAccessKey = ""] =
    /^(.*):([^:]*)$/.exec(process.env.TEST_S3_KEY ?? "") ?? [];
  const keys = { accessKeyId, secretAccessKey };
  await reachable("TEST_S3_URL", () => askS3(url, keys));
  return { ...externalServer({ url, description: "S3", variable: "TEST_S3_URL" }), ...keys };
}

/** A private one, to be stopped and started again: OpenStack Swift, which speaks S3 and checks every signature. */
export async function startS3(): Promise<S3Server> {
  await findOrInstall(() => (existsSync(SWIFT) && existsSync(PYTHON) ? SWIFT : undefined), {
    name: "OpenStack Swift",
    aptPackage: "python3-swift",
    variable: "TEST_S3_URL (and TEST_S3_KEY)",
  });
  const accessKeyId = `quarry:${randomBytes(8).toString("hex")}`;
  const secretAccessKey = randomBytes(16).toString("hex");
  const keys = { accessKeyId, secretAccessKey };
  const guardian = await Guardian.start(undefined);
  const server = await startServer(guardian, {
    name: "OpenStack Swift",
    server: (port) => ({
      command: PYTHON,
      args: ["-B", SERVER, join(guardian.folder, "swift"), String(port), accessKeyId, secretAccessKey],
      quitSignal: "SIGKILL",
    }),
    urlOf: (port) => `http://127.0.0.1:${port}`,
    ask: async (url) => {
      await askS3(url, keys);
      return { isOurs: true, product: "S3 by OpenStack Swift" };
    },
  });
  return { ...server, ...keys };
}

export async function bucketAt({ url, ...keys }: S3Keys & { url: string }): Promise<TestBucket> {
  const { accessKeyId, secretAccessKey } = keys;
  const bucket = `quarry-test-${randomBytes(6).toString("hex")}`;
  const ask = asking(url, keys);
  await ask("PUT", bucket);
  const values = (xml: string, name: string) =>
    [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(([, text]) => text!);
  return {
    ...{ endpoint: url, bucket, region: REGION, accessKeyId, secretAccessKey },
    settings: {
      filesUrl: `s3://${bucket}/quarry`,
      s3Endpoint: url,
      s3AccessKeyId: accessKeyId,
      s3SecretAccessKey: secretAccessKey,
    },
    env: {
      QUARRY_FILES: `s3://${bucket}/quarry`,
      AWS_ENDPOINT_URL_S3: url,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    },
    list: async (prefix = "") => {
      const keysFound: string[] = [];
      for (let after = ""; ; after = keysFound.at(-1)!) {
        const xml = await ask("GET", `${bucket}?list-type=2&prefix=${prefix}&start-after=${after}`);
        keysFound.push(...values(xml, "Key"));
        if (values(xml, "IsTruncated")[0] !== "true") return keysFound;
      }
    },
    uploads: async () => values(await ask("GET", `${bucket}?uploads=`), "Key"),
    put: async (key, body) => {
      await ask("PUT", `${bucket}/${key}`, body);
    },
    copy: async (from, to) => {
      await ask("PUT", `${bucket}/${to}`, await ask("GET", `${bucket}/${from}`));
    },
  };
}

async function askS3(url: string, keys: S3Keys): Promise<void> {
  await asking(url, keys)("GET", "");
}

function asking(url: string, keys: S3Keys) {
  const client = new AwsClient({ ...keys, service: "s3", region: REGION, retries: 0 });
  return async (method: string, path: string, body?: string | Uint8Array): Promise<string> => {
    const hash = createHash("sha256")
      .update(body ?? "")
      .digest("hex");
    const answer = await client.fetch(`${url}/${path}`, {
      method,
      headers: { "x-amz-content-sha256": hash },
      ...(body !== undefined && { body: body as Uint8Array<ArrayBuffer> | string }),
    });
    const said = await answer.text();
    if (answer.ok) return said;
    throw new Error(`${method} ${path}: ${answer.status} ${said.slice(0, 300)}`);
  };
}
