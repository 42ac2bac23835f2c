import { type Asked, isOver } from "../agents/ask.ts";
import { pause } from "../clock.ts";
import { problemOf } from "./problem.ts";

/** A stream that says nothing for long is taken for dead by what stands in between, and a model may take minutes. */
const QUIET_MS = 15_000;

/** Each change as an event, as soon as there is one; the last one says how it ended. */
export async function* eventsOf(
  ask: (onProgress: (asked: Asked) => void) => Promise<Asked>,
  quietMs = QUIET_MS,
): AsyncGenerator<string> {
  const seen: Asked[] = [];
  let wake = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  let isDone = false;
  void ask((asked) => {
    seen.push(asked);
    wake.abort();
  })
    .catch((error) => {
      failure = { error };
    })
    .finally(() => {
      isDone = true;
      wake.abort();
    });
  while (!isDone || seen.length > 0) {
    await pause(quietMs, wake.signal);
    wake = new AbortController();
    if (isDone) wake.abort();
    if (seen.length === 0 && !isDone) yield ": at it\n\n";
    for (const asked of seen.splice(0)) yield eventOf(asked);
  }
  if (!failure) return;
  yield failed(failure.error);
  // For the log.
  throw failure.error;
}

function eventOf(asked: Asked): string {
  const event = !isOver(asked) ? "progress" : asked.status === "COMPLETED" ? "answer" : "failed";
  return `event: ${event}\ndata: ${JSON.stringify(asked)}\n\n`;
}

/** Not the question but its asking failed: there is no more to tell than why. */
function failed(error: unknown): string {
  const { code, detail } = problemOf(error, "");
  return `event: failed\ndata: ${JSON.stringify({ status: "FAILED", code, error_message: detail })}\n\n`;
}
