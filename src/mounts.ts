import { isQuarryError, QuarryError } from "./errors.ts";

/** What systems say of a file on a server or device that is away; of one that is not there they say ENOENT. */
const AWAY: ReadonlySet<unknown> = new Set([
  ...["ESTALE", "EIO", "EREMOTEIO", "ENODEV", "ENXIO", "ENOTCONN", "ETIMEDOUT"],
  ...["EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ECONNABORTED", "ECONNRESET"],
]);
const CAUSES_MAX = 5;

/** Whether an error, or what it came of, is that a folder's mount is away. For errors of files: those of sockets have the same codes. */
export function isMountAway(error: unknown): boolean {
  return awayCode(error) !== undefined;
}

/** The same error, or one that says that work has to wait for the folder. */
export function orAway(error: unknown, path: string): unknown {
  const code = awayCode(error);
  // Whoever met it first knows best what it was.
  if (code === undefined || isQuarryError(error, "store_unavailable")) return error;
  return new QuarryError(
    "store_unavailable",
    `${path} cannot be reached (${code}): check that what it is mounted from answers`,
    { cause: error },
  );
}

function awayCode(error: unknown): string | undefined {
  let cause = error;
  for (let depth = 0; cause instanceof Error && depth < CAUSES_MAX; depth++) {
    const { code } = cause as NodeJS.ErrnoException;
    if (AWAY.has(code)) return code;
    cause = cause.cause;
  }
  return undefined;
}
