import { messageOf } from "../../errors.ts";
import { cleanText } from "./text.ts";

const CHARACTERS_MAX = 160;

/** What a library has to say, short enough for a message: its first line, without the names of its insides. */
export function reasonOf(error: unknown): string {
  const [first = ""] = cleanText(messageOf(error)).trim().split("\n", 1);
  return first.replace(/^(PDF error|\w+2\w+|\w*load): /, "").slice(0, CHARACTERS_MAX);
}
