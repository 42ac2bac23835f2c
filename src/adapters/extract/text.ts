const UTF16_NUL_SHARE = 0.25;
const CONTROL_SHARE_MAX = 0.05;
const CONTROLS_ALWAYS_ALLOWED = 2;

type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/**
 * Bytes of any usual encoding as text that every database takes. A declared charset counts less than what the bytes
 * show: a byte order mark, or letters that come out whole in UTF-8, as those of no other encoding do.
 */
export function decodeText(bytes: Uint8Array, declared?: string): string {
  const encoding = markedEncoding(bytes) ?? unmarkedUtf16(bytes);
  if (encoding) return cleanText(new TextDecoder(encoding).decode(bytes));
  const text = new TextDecoder("utf-8").decode(bytes);
  const isUtf8 = /[^\0-\x7f]/.test(text) && !text.includes("\ufffd");
  const other = declared && !isUtf8 && decoderFor(declared);
  if (other) return cleanText(other.decode(bytes));
  return cleanText(isMostlyIntact(text) ? text : new TextDecoder("windows-1252").decode(bytes));
}

/**
 * Without NUL and other control characters, lone surrogates and carriage returns: jsonb refuses the first two, and
 * none of them means anything to a reader. Words are written as people type them when they search: letters in one
 * piece with their accents, no ligatures, no hyphens that only show at the end of a line.
 */
export function cleanText(text: string): string {
  return (
    text
      .normalize("NFC")
      .replaceAll("\u00ad", "")
      .replaceAll(/[\ufb00-\ufb06]/g, (ligature) => ligature.normalize("NFKC"))
      .replaceAll(/\r\n?/g, "\n")
      .replaceAll("\f", "\n\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go
      .replaceAll(/[\0-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff]/g, "")
      .toWellFormed()
  );
}

/** Judges by the first bytes of a file that has no known signature. */
export function looksLikeText(head: Uint8Array): boolean {
  if (markedEncoding(head) ?? unmarkedUtf16(head)) return true;
  let controls = 0;
  for (const byte of head) if (isControl(byte)) controls++;
  return controls <= Math.max(CONTROLS_ALWAYS_ALLOWED, head.length * CONTROL_SHARE_MAX);
}

function isControl(byte: number): boolean {
  const isUsual = byte === 0x09 || byte === 0x0a || byte === 0x0c || byte === 0x0d || byte === 0x1b;
  return byte < 0x20 && !isUsual;
}

function markedEncoding(bytes: Uint8Array): Encoding | undefined {
  const [a, b, c] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return "utf-8";
  if (a === 0xff && b === 0xfe) return "utf-16le";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  return undefined;
}

/** Western text in UTF-16 has a NUL in every other place, always on the same side. */
function unmarkedUtf16(bytes: Uint8Array): Encoding | undefined {
  const head = bytes.subarray(0, 4096);
  const nuls: [even: number, odd: number] = [0, 0];
  for (const [position, byte] of head.entries()) if (byte === 0) nuls[(position % 2) as 0 | 1]++;
  const [even, odd] = nuls;
  if (even + odd < head.length * UTF16_NUL_SHARE || head.length < 4) return undefined;
  if (even === 0) return "utf-16le";
  if (odd === 0) return "utf-16be";
  return undefined;
}

function decoderFor(label: string): InstanceType<typeof TextDecoder> | undefined {
  try {
    const decoder = new TextDecoder(label);
    // A label that could be read byte by byte does not stand in UTF-16: the file was converted, the label was not.
    return decoder.encoding.startsWith("utf-16") ? undefined : decoder;
  } catch {
    return undefined;
  }
}

/** A damaged byte or two in a UTF-8 file must not turn all its umlauts into something else. */
function isMostlyIntact(text: string): boolean {
  let broken = 0;
  let foreign = 0;
  for (const letter of text.matchAll(/[^\0-\x7f]/gu)) {
    if (letter[0] === "\ufffd") broken++;
    else foreign++;
  }
  return foreign >= broken;
}
