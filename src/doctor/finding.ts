import { messageOf, QuarryError } from "../errors.ts";

/** What was seen of a part. A failure says what to do about it. */
export interface Finding {
  readonly part: string;
  readonly health: "ok" | "warning" | "failed";
  readonly said: string;
  /** For a failure: 3 when the part is not reachable, 2 when its settings are wrong, else 1. */
  readonly exitCode: number;
}

export type Look = () => Promise<string | Warning>;

/** Works, and should not be as it is. */
export class Warning {
  readonly said: string;

  constructor(said: string) {
    this.said = said;
  }
}

export async function finding(part: string, look: Look): Promise<Finding> {
  try {
    const seen = await look();
    return seen instanceof Warning
      ? { part, health: "warning", said: seen.said, exitCode: 0 }
      : { part, health: "ok", said: seen, exitCode: 0 };
  } catch (error) {
    const exitCode = error instanceof QuarryError ? error.exitCode : 1;
    return { part, health: "failed", said: messageOf(error), exitCode };
  }
}
