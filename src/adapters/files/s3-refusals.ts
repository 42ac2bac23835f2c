import { type ErrorCode, QuarryError } from "../../errors.ts";

/** The server's own no. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly region: string | undefined;

  constructor(status: number, code: string, options: { region?: string | undefined } = {}) {
    super(code);
    this.status = status;
    this.code = code;
    this.region = options.region;
  }
}

/** What the client itself has to say of the line. */
export class LineTrouble extends Error {}

interface About {
  readonly host: string;
  readonly bucket: string;
  readonly key: string | undefined;
}

/** What to do about it. Says nothing of what was sent: keys and signatures are in there. */
export function explained(error: unknown, about: About): QuarryError {
  const { host } = about;
  if (!(error instanceof Refusal)) {
    const reason = reasonOf(error);
    return new QuarryError(
      "store_unavailable",
      `the files' store at ${host} cannot be reached: ${reason}; start it, or set AWS_ENDPOINT_URL_S3 to where it listens`,
    );
  }
  const { status, code, region } = error;
  const known = REFUSALS.find(({ codes }) => codes.includes(code)) ?? KNOWN_BY_STATUS[status];
  if (known)
    return new QuarryError(known.as, known.say({ ...about, region, said: code || status }), { cause: error });
  if (code === "" && status < 500)
    return new QuarryError(
      "store_unavailable",
      `${host} answers ${status}, but not as S3 does: set AWS_ENDPOINT_URL_S3 to where the bucket's server listens`,
    );
  const isAway = isWorthAnotherTry(error);
  const said = isAway ? "cannot work now" : "refused";
  return new QuarryError(
    isAway ? "store_unavailable" : "store_failed",
    `the files' store at ${host} ${said}: ${code || status}`,
    { cause: error },
  );
}

/** Words of others may quote what was sent. */
function reasonOf(error: unknown): string {
  if (error instanceof LineTrouble) return error.message;
  return (error as { cause?: { code?: string } }).cause?.code ?? "the request could not be made";
}

interface Known {
  readonly codes: readonly string[];
  readonly as: ErrorCode;
  readonly say: (about: About & { region: string | undefined; said: string | number }) => string;
}

/** Settings that are wrong are mended by somebody; until then work waits, and none of it fails. */
const REFUSALS: readonly Known[] = [
  {
    codes: ["NoSuchKey"],
    as: "not_found",
    say: ({ host, key }) => `there is no ${key} in the files' store at ${host}`,
  },
  {
    codes: ["NoSuchBucket"],
    as: "store_unavailable",
    say: ({ host, bucket }) =>
      `there is no bucket ${bucket} at ${host}: create it, or set QUARRY_FILES to one that is there`,
  },
  {
    codes: [
      "InvalidAccessKeyId",
      "SignatureDoesNotMatch",
      "ExpiredToken",
      "InvalidToken",
      "TokenRefreshRequired",
    ],
    as: "store_unavailable",
    say: ({ host, said }) =>
      `the files' store at ${host} refuses the key (${said}): set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a key that expires, AWS_SESSION_TOKEN`,
  },
  {
    codes: ["AccessDenied", "AllAccessDisabled", "AccountProblem"],
    as: "store_unavailable",
    say: ({ host, bucket }) =>
      `the key may not do this in the bucket ${bucket} at ${host}: allow it s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListBucket`,
  },
  {
    codes: ["RequestTimeTooSkewed"],
    as: "store_unavailable",
    say: ({ host }) => `the clock of this machine is not that of the files' store at ${host}: set it`,
  },
  {
    codes: ["PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"],
    as: "store_unavailable",
    say: ({ host, bucket, region }) =>
      `the bucket ${bucket} at ${host} is in another region: set AWS_REGION${region ? ` to ${region}` : ""}`,
  },
  {
    codes: ["QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"],
    as: "disk_full",
    say: ({ host }) => `the files' store at ${host} is full: make room there`,
  },
];

/** For answers without words, or with words of a server's own. */
const KNOWN_BY_STATUS: Readonly<Record<number, Known>> = Object.fromEntries(
  [
    [301, "PermanentRedirect"],
    [403, "AccessDenied"],
    [507, "InsufficientStorage"],
  ].map(([status, code]) => [status, REFUSALS.find(({ codes }) => codes.includes(code as string))!]),
);

/** The way there was cut or garbled, or the server asks for patience. */
export function isWorthAnotherTry(error: unknown): boolean {
  if (!(error instanceof Refusal)) return true;
  const { status, code } = error;
  return (status >= 500 && status !== 507) || status === 429 || AGAIN.includes(code);
}

const AGAIN = [
  "RequestTimeout",
  "SlowDown",
  "InternalError",
  "ServiceUnavailable",
  "BadDigest",
  "XAmzContentSHA256Mismatch",
  "OperationAborted",
  "TemporaryRedirect",
  "IncompleteBody",
];
