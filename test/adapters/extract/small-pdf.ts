import { deflateSync } from "node:zlib";

/** The objects of a PDF by their numbers, 1 the catalog. For what the writer of whole documents does not do. */
export type SmallObjects = Readonly<Record<number, string | Buffer>>;

export function stream(dictionary: string, data: Uint8Array | string): Buffer {
  const bytes = Buffer.from(data as string, "latin1");
  return Buffer.concat([
    Buffer.from(`<< ${dictionary} /Length ${bytes.length} >>\nstream\n`, "latin1"),
    bytes,
    Buffer.from("\nendstream"),
  ]);
}

export function flate(content: string): Buffer {
  return stream("/Filter /FlateDecode", deflateSync(content));
}

/** With a table of objects in plain text. */
export function smallPdf(objects: SmallObjects): Buffer {
  const { parts, offsets, end } = written(objects);
  const size = Math.max(...offsets.keys()) + 1;
  const entries = Array.from({ length: size }, (_, number) => {
    const offset = offsets.get(number);
    return offset === undefined ? "0000000000 65535 f \n" : `${String(offset).padStart(10, "0")} 00000 n \n`;
  });
  const trailer = `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${end}\n%%EOF\n`;
  return Buffer.concat([...parts, Buffer.from(`xref\n0 ${size}\n${entries.join("")}${trailer}`)]);
}

/** As newer programs write it: `packed` objects in a stream of objects, the table in a stream as well. */
export function packedPdf(objects: SmallObjects, packed: Readonly<Record<number, string>>): Buffer {
  const numbers = Object.keys(packed).map(Number);
  const container = Math.max(...numbers, ...Object.keys(objects).map(Number)) + 1;
  const bodies = Object.values(packed);
  const places = bodies.map((_, index) => bodies.slice(0, index).join(" ").length + Math.min(index, 1));
  const head = numbers.map((number, index) => `${number} ${places[index]}`).join(" ");
  const together = stream(
    `/Type /ObjStm /N ${numbers.length} /First ${head.length + 1} /Filter /FlateDecode`,
    deflateSync(`${head} ${bodies.join(" ")}`),
  );
  const { parts, offsets, end } = written({ ...objects, [container]: together });
  const rows = Array.from({ length: container + 2 }, (_, number) => {
    const index = numbers.indexOf(number);
    if (index >= 0) return row(2, container, index);
    const offset = number === container + 1 ? end : offsets.get(number);
    return offset === undefined ? row(0, 0, 0) : row(1, offset, 0);
  });
  // Each row as what differs from the row above, as these tables are commonly written.
  const predicted = rows.map((bytes, index) =>
    Buffer.from([2, ...bytes.map((byte, column) => byte - (rows[index - 1]?.[column] ?? 0))]),
  );
  const table = stream(
    `/Type /XRef /Size ${rows.length} /W [1 4 1] /Root 1 0 R /Filter /FlateDecode ` +
      "/DecodeParms << /Predictor 12 /Columns 6 >>",
    deflateSync(Buffer.concat(predicted)),
  );
  return Buffer.concat([
    ...parts,
    Buffer.from(`${container + 1} 0 obj\n`),
    table,
    Buffer.from(`\nendobj\nstartxref\n${end}\n%%EOF\n`),
  ]);
}

function row(kind: number, second: number, third: number): number[] {
  return [kind, ...[24, 16, 8, 0].map((bits) => (second >> bits) & 255), third];
}

function written(objects: SmallObjects) {
  const parts = [Buffer.from("%PDF-1.5\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  const offsets = new Map<number, number>();
  let end = parts[0]!.length;
  for (const [number, body] of Object.entries(objects)) {
    offsets.set(Number(number), end);
    const whole = Buffer.concat([
      Buffer.from(`${number} 0 obj\n`),
      Buffer.from(body as string, "latin1"),
      Buffer.from("\nendobj\n"),
    ]);
    parts.push(whole);
    end += whole.length;
  }
  return { parts, offsets, end };
}
