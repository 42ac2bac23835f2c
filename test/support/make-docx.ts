import { makeZip, type ZipContent } from "./make-zip.ts";

export type DocxBlock =
  | { readonly heading: string; readonly level?: 1 | 2 | 3 | 4 | 5 | 6 }
  | { readonly paragraph: string; readonly footnote?: string }
  | { readonly bullets: readonly string[] }
  | { readonly numbers: readonly string[] }
  /** Word marks rows that are no header with `w:tblHeader w:val="off"` when told to. */
  | { readonly table: readonly (readonly string[])[]; readonly headerMarks?: "none" | "off" }
  /** A picture nobody can see, with the words that stand for it. */
  | { readonly picture: string };

export interface DocxSettings {
  readonly blocks: readonly DocxBlock[];
  readonly title?: string;
  /** Stands for the body of the document, for bodies that Word would not write. */
  readonly bodyXml?: string;
  readonly more?: readonly ZipContent[];
}

const WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const DRAWING = "http://schemas.openxmlformats.org/drawingml/2006";

/** Writes Word documents with what a reader has to understand: styles, lists, tables, footnotes, pictures. */
export function makeDocx(settings: DocxSettings): Buffer {
  const notes = settings.blocks.flatMap((block) => ("footnote" in block ? [block.footnote] : []));
  let noteCount = 0;
  const body =
    settings.bodyXml ?? settings.blocks.map((block) => blockXml(block, () => ++noteCount)).join("");
  const parts: Record<string, string> = {
    "[Content_Types].xml": CONTENT_TYPES,
    "_rels/.rels": relationships([
      ["d", `${OFFICE}/relationships/officeDocument`, "word/document.xml"],
      ["c", `${PACKAGE}/relationships/metadata/core-properties`, "docProps/core.xml"],
    ]),
    "docProps/core.xml": `<cp:coreProperties xmlns:cp="${PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>${escaped(settings.title ?? "")}</dc:title></cp:coreProperties>`,
    "word/_rels/document.xml.rels": relationships([
      ["s", `${OFFICE}/relationships/styles`, "styles.xml"],
      ["n", `${OFFICE}/relationships/numbering`, "numbering.xml"],
      ["f", `${OFFICE}/relationships/footnotes`, "footnotes.xml"],
      ["p", `${OFFICE}/relationships/image`, "media/picture.png"],
    ]),
    "word/document.xml": `<w:document xmlns:w="${WORD}" xmlns:r="${OFFICE}/relationships" xmlns:wp="${DRAWING}/wordprocessingDrawing" xmlns:a="${DRAWING}/main" xmlns:pic="${DRAWING}/picture"><w:body>${body}</w:body></w:document>`,
    "word/styles.xml": stylesXml(),
    "word/numbering.xml": numberingXml(),
    "word/footnotes.xml": `<w:footnotes xmlns:w="${WORD}">${notes.map((note, position) => `<w:footnote w:id="${position + 1}">${paragraphXml(note ?? "")}</w:footnote>`).join("")}</w:footnotes>`,
    "word/media/picture.png": "not read by anybody",
  };
  return makeZip([
    ...Object.entries(parts).map(([name, content]) => ({
      name,
      content: name.endsWith(".png") ? content : `<?xml version="1.0" encoding="UTF-8"?>${content}`,
    })),
    ...(settings.more ?? []),
  ]);
}

export function paragraphXml(words: string, properties = ""): string {
  return `<w:p>${properties && `<w:pPr>${properties}</w:pPr>`}${runXml(words)}</w:p>`;
}

function blockXml(block: DocxBlock, nextNote: () => number): string {
  if ("heading" in block)
    return paragraphXml(block.heading, `<w:pStyle w:val="Heading${block.level ?? 1}"/>`);
  if ("paragraph" in block) {
    const mark = block.footnote ? `<w:r><w:footnoteReference w:id="${nextNote()}"/></w:r>` : "";
    return `<w:p>${runXml(block.paragraph)}${mark}</w:p>`;
  }
  if ("bullets" in block) return listXml(block.bullets, 1);
  if ("numbers" in block) return listXml(block.numbers, 2);
  if ("table" in block) return tableXml(block.table, block.headerMarks ?? "none");
  return `<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="p" descr="${escaped(block.picture)}"/><a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip r:embed="p"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`;
}

function runXml(words: string): string {
  return `<w:r><w:t xml:space="preserve">${escaped(words)}</w:t></w:r>`;
}

function listXml(items: readonly string[], numbering: number): string {
  const properties = `<w:numPr><w:ilvl w:val="0"/><w:numId w:val="${numbering}"/></w:numPr>`;
  return items.map((item) => paragraphXml(item, properties)).join("");
}

function tableXml(rows: readonly (readonly string[])[], marks: "none" | "off"): string {
  const xml = rows.map((cells, position) => {
    const mark = position === 0 ? "<w:tblHeader/>" : marks === "off" ? '<w:tblHeader w:val="off"/>' : "";
    const content = cells.map((cell) => `<w:tc>${paragraphXml(cell)}</w:tc>`).join("");
    return `<w:tr><w:trPr>${mark}</w:trPr>${content}</w:tr>`;
  });
  const border = (side: string) => `<w:${side} w:val="single" w:sz="4" w:color="auto"/>`;
  const borders = ["top", "left", "bottom", "right", "insideH", "insideV"].map(border).join("");
  const grid = (rows[0] ?? []).map(() => "<w:gridCol/>").join("");
  return `<w:tbl><w:tblPr><w:tblBorders>${borders}</w:tblBorders></w:tblPr><w:tblGrid>${grid}</w:tblGrid>${xml.join("")}</w:tbl>`;
}

function stylesXml(): string {
  const styles = [1, 2, 3, 4, 5, 6].map(
    (level) =>
      `<w:style w:type="paragraph" w:styleId="Heading${level}"><w:name w:val="heading ${level}"/><w:pPr><w:outlineLvl w:val="${level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="${40 - 4 * level}"/></w:rPr></w:style>`,
  );
  return `<w:styles xmlns:w="${WORD}">${styles.join("")}</w:styles>`;
}

function numberingXml(): string {
  const abstract = (id: number, format: string, sign: string) =>
    `<w:abstractNum w:abstractNumId="${id}"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="${format}"/><w:lvlText w:val="${sign}"/></w:lvl></w:abstractNum>`;
  const concrete = (id: number) => `<w:num w:numId="${id}"><w:abstractNumId w:val="${id}"/></w:num>`;
  return `<w:numbering xmlns:w="${WORD}">${abstract(1, "bullet", "•")}${abstract(2, "decimal", "%1.")}${concrete(1)}${concrete(2)}</w:numbering>`;
}

function relationships(list: readonly (readonly [id: string, type: string, target: string])[]): string {
  const items = list.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="${type}" Target="${target}"/>`,
  );
  return `<Relationships xmlns="${PACKAGE}/relationships">${items.join("")}</Relationships>`;
}

const CONTENT_TYPES = `<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>${["document.main", "styles", "numbering", "footnotes"].map((part) => `<Override PartName="/word/${part.split(".")[0]}.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.${part}+xml"/>`).join("")}<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>`;

function escaped(words: string): string {
  return words
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
