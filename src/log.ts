import { type DestinationStream, type Logger, pino } from "pino";

export type Log = Logger;

const SECRET_KEYS = ["password", "apiKey", "api_key", "authorization", "token", "secret", "cookie"];
const CENSORED = "[hidden]";
/** `scheme://user:password@host`, `Bearer …` and `…key = …` inside messages. Every repetition is bounded. */
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@]{0,200}:)[^\s@]{1,500}(@)/gi;
const NAMED_SECRET =
  /(bearer\s{1,4}|(?:api[_-]?key|password|secret)["'\\]{0,2}\s{0,2}[=:]\s{0,2}["'\\]{0,2})[^\s"',}\\]{1,500}/gi;

export function hideSecrets(text: string): string {
  return text.replaceAll(URL_PASSWORD, `$1${CENSORED}$2`).replaceAll(NAMED_SECRET, `$1${CENSORED}`);
}

/** Structured logs, one JSON line each. Secrets are hidden by key and, in text, by shape. */
export function createLog(options: { level?: string; destination?: DestinationStream } = {}): Log {
  const paths = SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]);
  return pino(
    {
      level: options.level ?? "info",
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths, censor: CENSORED },
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        streamWrite: hideSecrets,
      },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

export const silentLog: Log = pino({ level: "silent" });
