import { deflateSync } from "node:zlib";
import { makeDocx, paragraphXml } from "../../support/make-docx.ts";
import { makePdf, text } from "../../support/make-pdf.ts";
import { makeZip } from "../../support/make-zip.ts";
import { smallPdf, stream } from "./small-pdf.ts";

export interface HostileFile {
  readonly filename: string;
  readonly content: Buffer | string;
}

/** Files made to hang, exhaust or mislead a reader. */
export function hostileFiles(): HostileFile[] {
  return [...hostilePdfs(), ...hostileArchives(), ...hostileTexts(), ...hostilePictures(), ...misnamed()];
}

const onePage = () => makePdf({ pages: [{ items: [text("Some words.", { x: 72, y: 90 })] }] });

function hostilePdfs(): HostileFile[] {
  const source = onePage().toString("latin1");
  const changed = (from: string | RegExp, to: string) => Buffer.from(source.replace(from, to), "latin1");
  const content = (operators: string) => {
    const stream = `<< /Length ${operators.length} >>\nstream\n${operators}\nendstream`;
    return changed(/<< +\/Length[\s\S]*?endstream/, stream);
  };
  const pdfs: Record<string, Buffer> = {
    "page tree in a circle": changed("/Kids [", "/Kids [2 0 R "),
    "page tree is its own parent": changed("/Type /Pages", "/Type /Pages /Parent 2 0 R"),
    "more pages than there are": changed("/Count 1", "/Count 5000"),
    "a billion pages": changed("/Count 1", "/Count 999999999"),
    "minus one page": changed("/Count 1", "/Count -1"),
    "no pages": changed(/\/Kids \[[^\]]*\]/, "/Kids []"),
    "no catalog": changed("/Root", "/Toor"),
    "table of objects that points to itself": changed(
      /trailer\n<</,
      `trailer\n<< /Prev ${source.indexOf("xref\n")}`,
    ),
    "table of objects far away": changed(/startxref\n\d+/, "startxref\n99999999999999999999"),
    "page as large as a country": changed("/MediaBox [0 0 612 792]", "/MediaBox [0 0 1e9 1e9]"),
    "page of no size": changed("/MediaBox [0 0 612 792]", "/MediaBox [5 5 5 5]"),
    "page of nonsense size": changed("/MediaBox [0 0 612 792]", "/MediaBox [/a (b) null <<>>]"),
    "two hundred thousand words": content(
      "BT /F0 9 Tf 1 0 0 1 72 700 Tm ".concat("(word) Tj 3 1 Td ".repeat(40_000), "ET"),
    ),
    "operators nested too deeply": content("q ".repeat(200_000)),
    "brackets nested too deeply": content("[".repeat(200_000)),
    "numbers without end": content(`${"9".repeat(100_000)} 0 Td`),
    "a stream longer than the file": changed(/\/Length \d+/, "/Length 2147483647"),
    "a filter nobody knows": changed(/\/Length (\d+)/, "/Filter [/JBIG2Decode /DCTDecode /Foo] /Length $1"),
    "a font that is a page": changed("/Type /Font", "/Type /Page"),
    "branches that are used again and again": smallPdf({
      1: "<< /Type /Catalog /Pages 2 0 R >>",
      ...Object.fromEntries(
        Array.from({ length: 30 }, (_, level) => [
          level + 2,
          `<< /Type /Pages /Count 0 /Kids [${`${level + 3} 0 R `.repeat(2)}] >>`,
        ]),
      ),
      32: "<< /Type /Pages /Count 0 /Kids [] >>",
    }),
    "a table of objects without end": tableOfObjects("/W [0 0 0] /Index [0 9999999999]"),
    "a table of objects with rows of a gigabyte": tableOfObjects("/W [1 1000000000 1]"),
    "a table of objects that goes on in itself": tableOfObjects("/W [1 2 1] /Prev 15"),
    "two million blanks in a page": changed("/Type /Page ", `/Type /Page${" %\n".repeat(700_000)}`),
    "only a signature": Buffer.from("%PDF-1.7\n%%EOF"),
    "rubbish before the signature": Buffer.concat([Buffer.alloc(900, "x"), onePage()]),
  };
  return Object.entries(pdfs).map(([name, bytes]) => ({ filename: `${name}.pdf`, content: bytes }));
}

function tableOfObjects(settings: string): Buffer {
  const table = stream(
    `/Type /XRef /Size 9 /Root 1 0 R /Filter /FlateDecode ${settings}`,
    deflateSync("xxxxxxxx"),
  );
  return Buffer.concat([
    Buffer.from("%PDF-1.5\n%\xe2\xe3\n1 0 obj\n", "latin1"),
    table,
    Buffer.from("\nendobj\nstartxref\n14\n%%EOF\n"),
  ]);
}

function hostileArchives(): HostileFile[] {
  const zeros = Buffer.alloc(48 * 2 ** 20, " ");
  const part = (name: string, content: Buffer | string, claimedBytes?: number) =>
    makeDocx({ blocks: [], more: [{ name, content, ...(claimedBytes !== undefined && { claimedBytes }) }] });
  const laughs = Array.from(
    { length: 12 },
    (_, level) => `<!ENTITY l${level + 1} "${`&l${level};`.repeat(10)}">`,
  );
  const withDoctype = (doctype: string, words: string) =>
    makeZip([
      { name: "[Content_Types].xml", content: "<Types/>" },
      { name: "_rels/.rels", content: "<Relationships/>" },
      {
        name: "word/document.xml",
        content: `<?xml version="1.0"?>${doctype}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${paragraphXml("x").replace("x<", `${words}<`)}</w:body></w:document>`,
      },
    ]);
  const archives: Record<string, Buffer> = {
    "a bomb": part("word/bomb.xml", zeros),
    "a bomb that hides its size": part("word/bomb.xml", zeros, 10),
    "four gigabytes, it says": part("word/big.xml", "small", 0xfffffffe),
    "too many entries": makeZip(
      Array.from({ length: 20_000 }, (_, entry) => ({
        name: `word/${entry}.xml`,
        content: "",
        isStored: true,
      })),
    ),
    "nested too deeply": makeDocx({ blocks: [], bodyXml: "<w:sdt><w:sdtContent>".repeat(20_000) }),
    "closed and nested too deeply": makeDocx({
      blocks: [],
      bodyXml: "<w:ins>".repeat(20_000) + "</w:ins>".repeat(20_000),
    }),
    "a billion laughs": withDoctype(`<!DOCTYPE x [<!ENTITY l0 "lol">${laughs.join("")}]>`, "&l12;"),
    "somebody else's file": withDoctype('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>', "&f;"),
    "no document inside": makeZip([{ name: "word/nothing.xml", content: "<a/>" }]),
    "not XML": part("word/document.xml", "this is not XML & never was <"),
    "a path out of the archive": part("../../../../tmp/word/evil.xml", "x"),
    "only a signature": Buffer.from("PK\x03\x04"),
  };
  return Object.entries(archives).map(([name, bytes]) => ({ filename: `${name}.docx`, content: bytes }));
}

function hostileTexts(): HostileFile[] {
  const many = 100_000;
  const loneSurrogates = Buffer.concat([
    Buffer.from([0xff, 0xfe]),
    Buffer.from("a\ud800b\udc00c\0d", "utf16le"),
  ]);
  return [
    ...["> ", "[", "![](", "`", "#", "*", "_", "| ", "- ", "<", "&", "\\", "$", "\n- ".padEnd(6, " ")].map(
      (mark) => ({ filename: "marks.md", content: mark.repeat(many) }),
    ),
    { filename: "nul.txt", content: `words${"\0".repeat(20)} and ${"more words ".repeat(50)}` },
    { filename: "lone surrogates.txt", content: loneSurrogates },
    { filename: "odd length.txt", content: Buffer.concat([loneSurrogates, Buffer.from("x")]) },
    { filename: "one line.txt", content: "x".repeat(3_000_000) },
    { filename: "only blank lines.txt", content: "\n".repeat(500_000) },
    { filename: "deep.html", content: `<html>${"<div>".repeat(many)}words` },
    {
      filename: "deep and closed.html",
      content: `<html>${"<div></p>".repeat(many)}words${"</div>".repeat(many)}`,
    },
    { filename: "deep lists.html", content: `<html>${"<ul><li>".repeat(many)}words` },
    { filename: "deep tables.html", content: `<html>${"<table><tr><td>".repeat(3000)}words` },
    { filename: "bold.html", content: `<html>${"<b>".repeat(many)}words` },
    { filename: "unfinished.html", content: `<html>${"<a ".repeat(many)}` },
    { filename: "unfinished comment.html", content: `<html><p>words</p>${"<!--".repeat(many)}` },
    { filename: "unfinished script.html", content: `<html><p>words</p>${"<script>".repeat(many)}` },
    {
      filename: "wide.html",
      content: `<html><table><tr><td colspan="1000000000">a</td><td rowspan="99999999">b</td></tr></table>`,
    },
    { filename: "attributes.html", content: `<html><p ${"a=b ".repeat(many)}>words</p>` },
    { filename: "wide.csv", content: `${"a,".repeat(many)}\n` },
    { filename: "quotes.csv", content: `a,b\n${'"'.repeat(many)}` },
    { filename: "deep.json", content: "[".repeat(many) },
    { filename: "matter.md", content: `---\n${"title: x\n".repeat(many)}` },
  ];
}

function hostilePictures(): HostileFile[] {
  const png = Buffer.alloc(60);
  png.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  png.writeUInt32BE(100_000, 16);
  png.writeUInt32BE(100_000, 20);
  const gif = Buffer.from("GIF89a\xff\xff\xff\xff\0\0\0", "latin1");
  const jpeg = Buffer.from("ffd8ffc00011080000ffff03012200021101031101", "hex");
  jpeg.writeUInt16BE(0xffff, 7);
  const bmp = Buffer.alloc(60);
  bmp.write("BM");
  bmp.writeInt32LE(2_000_000_000, 18);
  bmp.writeInt32LE(-2_000_000_000, 22);
  const loop = Buffer.from("49492a000800000001000001040001000000020000000800000000000000", "hex");
  const webp = Buffer.concat([
    Buffer.from("RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0", "latin1"),
    Buffer.alloc(6, 0xff),
  ]);
  return [
    { filename: "bomb.png", content: png },
    { filename: "bomb.gif", content: gif },
    { filename: "bomb.jpg", content: jpeg },
    { filename: "bomb.bmp", content: bmp },
    { filename: "bomb.webp", content: webp },
    { filename: "circle.tif", content: loop },
    { filename: "only a signature.png", content: Buffer.from("\x89PNG\r\n\x1a\n", "latin1") },
    { filename: "only a signature.jpg", content: Buffer.from("\xff\xd8\xff", "latin1") },
    {
      filename: "fill bytes.jpg",
      content: Buffer.concat([Buffer.from("\xff\xd8", "latin1"), Buffer.alloc(500_000, 0xff)]),
    },
  ];
}

function misnamed(): HostileFile[] {
  const names = ["a.pdf", "a.docx", "a.html", "a.png", "a.tif", "a.md", "a.csv", "a"];
  const noise = Buffer.from(Uint8Array.from({ length: 4000 }, (_, at) => (at * at * 31 + at * 17) % 256));
  return names.flatMap((filename) => [
    { filename, content: onePage() },
    { filename, content: noise },
    { filename, content: "" },
    { filename, content: "words" },
  ]);
}
