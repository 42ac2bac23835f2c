/** A line, or that there was one of more bytes than are taken. */
export type Line = Uint8Array | "too long";

const NEWLINE = 0x0a;

/** Bytes → lines. What is longer than `bytesMax` is passed over as it comes and never held. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  { bytesMax }: { bytesMax: number },
): AsyncGenerator<Line> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  const take = (bytes: Uint8Array) => {
    heldBytes += bytes.length;
    if (heldBytes <= bytesMax) held.push(bytes);
    else held = [];
  };
  const end = (): Line => {
    const line = heldBytes > bytesMax ? "too long" : Buffer.concat(held);
    held = [];
    heldBytes = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, at));
      yield end();
      start = at + 1;
    }
    take(chunk.subarray(start));
  }
  // The last line may lack its end.
  if (heldBytes > 0) yield end();
}
