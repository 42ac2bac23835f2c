/** The text of the first element of this name within the first of another: `<Error>…<Code>NoSuchKey</Code>…`. */
export function valueIn(xml: string, within: string, name: string): string | undefined {
  const start = xml.search(new RegExp(`<${within}[\\s>]`));
  return start < 0 ? undefined : valuesIn(xml.slice(start), name)[0];
}

/** Of flat answers: the elements of a name, wherever they stand. */
export function valuesIn(xml: string, name: string): string[] {
  const values: string[] = [];
  for (const [, text = ""] of xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g")))
    values.push(plain(text));
  return values;
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,4}));/gi, (given, decimal, hex, name) => {
    if (name !== undefined) return NAMED[name] ?? given;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
