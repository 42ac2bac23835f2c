import type { PdfObject } from "./pdf-bytes.ts";
import { type PdfObjects, PdfUnsure } from "./pdf-objects.ts";
import { isDict, isRef, type PdfDict, type PdfValue } from "./pdf-syntax.ts";

/** Where a page's own object is, and what it inherits; undefined where that object was overwritten. */
export type PdfLeaf = { readonly page: PdfValue; readonly resources: PdfValue } | undefined;

const DEPTH_MAX = 32;
const PAGES_MAX = 1_000_000;

/** The pages of a document in their order. Sure only when the tree has as many as it says. */
export async function pagesOf(objects: PdfObjects, catalog: PdfValue | undefined): Promise<PdfLeaf[]> {
  const root = await objects.value(catalog);
  const tree = isDict(root) ? await objects.value(root.get("Pages")) : null;
  if (!isDict(tree)) throw new PdfUnsure("no tree of pages");
  const pages: PdfLeaf[] = [];
  await addPages(objects, { node: tree, resources: null, depth: 0, pages });
  return pages;
}

interface Branch {
  readonly node: PdfDict;
  readonly resources: PdfValue;
  readonly depth: number;
  readonly pages: PdfLeaf[];
}

async function addPages(objects: PdfObjects, { node, resources, depth, pages }: Branch): Promise<void> {
  const kids = await objects.value(node.get("Kids"));
  if (!Array.isArray(kids) || !kids.every(isRef) || depth > DEPTH_MAX)
    throw new PdfUnsure("an odd tree of pages");
  const nodes: (PdfDict | undefined)[] = [];
  for (const kid of kids) nodes.push(soundNode(await objects.follow(kid)));
  const lost = nodes.filter((kid) => kid === undefined).length;
  const counts = await Promise.all(nodes.map((kid) => (kid ? pageCount(objects, kid) : 0)));
  const missing = (await pageCount(objects, node)) - counts.reduce((sum, count) => sum + count, 0);
  // An overwritten branch would move the pages behind it: readers take it for one page.
  if (missing !== lost || pages.length + nodes.length > PAGES_MAX)
    throw new PdfUnsure("pages were miscounted");
  for (const [index, kid] of nodes.entries()) {
    const inherited = kid?.get("Resources") ?? resources;
    if (!kid) pages.push(undefined);
    else if (kid.has("Kids"))
      await addPages(objects, { node: kid, resources: inherited, depth: depth + 1, pages });
    else pages.push({ page: kids[index]!, resources: inherited });
  }
}

function soundNode(object: PdfObject | undefined): PdfDict | undefined {
  if (!object || !isDict(object.value)) return undefined;
  const { value, hasNonsense } = object;
  return hasNonsense && !value.has("Contents") && !value.has("Kids") ? undefined : value;
}

async function pageCount(objects: PdfObjects, node: PdfDict): Promise<number> {
  if (!node.has("Kids")) return 1;
  const count = await objects.value(node.get("Count"));
  if (typeof count !== "number" || !Number.isInteger(count) || count < 0)
    throw new PdfUnsure("pages that are not counted");
  return count;
}
