import type { PdfObject } from "./pdf-bytes.ts";
import type { PdfObjects } from "./pdf-objects.ts";
import { isDict, isRef, type PdfDict, PdfUnsure, type PdfValue } from "./pdf-syntax.ts";

/** Where a page's own object is, and what it inherits; undefined where that object was overwritten. */
export type PdfLeaf = { readonly page: PdfValue; readonly resources: PdfValue } | undefined;

const DEPTH_MAX = 32;
/** Branches and pages. A tree may use one branch in many places. */
const NODES_MAX = 200_000;

/** The pages of a document in their order. Sure only when the tree has as many as it says. */
export async function pagesOf(objects: PdfObjects, catalog: PdfValue | undefined): Promise<PdfLeaf[]> {
  const root = await objects.value(catalog);
  const tree = isDict(root) ? await objects.value(root.get("Pages")) : null;
  if (!isDict(tree)) throw new PdfUnsure("no tree of pages");
  const pages: PdfLeaf[] = [];
  await addPages(objects, { node: tree, resources: null, depth: 0 }, { pages, nodes: 0 });
  return pages;
}

interface Branch {
  readonly node: PdfDict;
  readonly resources: PdfValue;
  readonly depth: number;
}

interface Found {
  readonly pages: PdfLeaf[];
  nodes: number;
}

async function addPages(
  objects: PdfObjects,
  { node, resources, depth }: Branch,
  found: Found,
): Promise<void> {
  const kids = await objects.value(node.get("Kids"));
  if (!Array.isArray(kids) || !kids.every(isRef)) throw new PdfUnsure("an odd tree of pages");
  found.nodes += kids.length;
  if (found.nodes > NODES_MAX || depth > DEPTH_MAX) throw new PdfUnsure("too large a tree of pages");
  const nodes: (PdfDict | undefined)[] = [];
  for (const kid of kids) nodes.push(soundNode(await objects.follow(kid)));
  await checkCount(objects, node, nodes);
  for (const [index, kid] of nodes.entries()) {
    const inherited = kid?.get("Resources") ?? resources;
    if (!kid) found.pages.push(undefined);
    else if (kid.has("Kids"))
      await addPages(objects, { node: kid, resources: inherited, depth: depth + 1 }, found);
    else found.pages.push({ page: kids[index]!, resources: inherited });
  }
}

/** An overwritten branch of several pages would move those behind it: readers take it for one page. */
async function checkCount(objects: PdfObjects, node: PdfDict, kids: readonly (PdfDict | undefined)[]) {
  let counted = 0;
  for (const kid of kids) counted += kid ? await pageCount(objects, kid) : 1;
  if (counted !== (await pageCount(objects, node))) throw new PdfUnsure("pages were miscounted");
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
