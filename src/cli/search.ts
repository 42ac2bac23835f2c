import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { QuarryError } from "../errors.ts";
import type { SearchMode, SearchResult } from "../search/search.ts";
import { machineCell } from "./machines.ts";
import { type Output, plain } from "./output.ts";
import {
  type CommonOptions,
  idsOf,
  keyValue,
  wholeNumber,
  withCommonOptions,
  withQuarry,
} from "./session.ts";

interface SearchFlags extends CommonOptions {
  readonly tenant: string;
  readonly collection?: string;
  readonly document?: string[];
  readonly metadata?: Record<string, unknown>;
  readonly mode: SearchMode;
  readonly limit: number;
}

export function addSearch(program: Command): void {
  withCommonOptions(program.command("search <query...>"))
    .description("Finds passages by meaning, by words and by what they are about.")
    .option("--limit <count>", "how many at most, up to 100", wholeNumber, 10)
    .option("--tenant <name>", "whose documents", "default")
    .option("--collection <name>", "only this collection")
    .option("--document <id...>", "only these documents; a beginning that no other has will do")
    .option("--metadata <key=value>", "only documents with it; may be given several times", keyValue)
    .option("--mode <mode>", "hybrid, vector, keyword or graph", "hybrid")
    .addHelpText("after", '\nExample:\n  quarry search "who must be told before a blast"')
    .action((words: string[], options: SearchFlags) =>
      withQuarry(options, (quarry, output) => search(quarry, output, words.join(" "), options), {
        isReader: true,
      }),
    );
}

async function search(quarry: Quarry, output: Output, query: string, options: SearchFlags): Promise<void> {
  const { tenant, limit, mode, collection, metadata } = options;
  await refuseUnknownPlace(quarry, options);
  const documentIds = options.document && (await idsOf(quarry, options.document));
  const answer = await quarry.search.search({
    query,
    tenant,
    limit,
    mode,
    ...(collection !== undefined && { collection }),
    ...(documentIds && { documentIds }),
    ...(metadata && { metadata }),
  });
  for (const warning of answer.warnings) process.stderr.write(`quarry: ${plain(warning)}\n`);
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
  const machineOf = machineCell(
    quarry,
    answer.results.map(({ seenOn }) => seenOn),
  );
  const found = answer.results.map((result, index) => {
    const places = [...machineOf(result.seenOn), result.collection, result.documentId];
    return shown(result, { number: index + 1, places, isColoured });
  });
  const text =
    found.length === 0 ? "Nothing found. Is everything indexed? See quarry status." : found.join("\n\n");
  output.result(answer, text);
}

/** A name that was mistyped must not look like a search without results. */
export async function refuseUnknownPlace(
  quarry: Quarry,
  { tenant, collection }: Pick<SearchFlags, "tenant" | "collection">,
): Promise<void> {
  if (collection === undefined && tenant === "default") return;
  const { documents } = await quarry.documents.list({ tenant, collection, limit: 1 });
  if (documents.length > 0) return;
  const what = collection === undefined ? "" : ` in the collection ${JSON.stringify(collection)}`;
  throw new QuarryError(
    "not_found",
    `there is no document of the tenant ${JSON.stringify(tenant)}${what}: quarry documents list shows what there is`,
  );
}

function shown(
  result: SearchResult,
  { number, places, isColoured }: { number: number; places: readonly string[]; isColoured: boolean },
): string {
  const bold = (text: string) => (isColoured ? `\x1b[1m${text}\x1b[22m` : text);
  const place = [result.filename, `page ${result.pageNumber}`, ...result.headingPath].map(plain).join(" › ");
  const dim = (text: string) => (isColoured ? `\x1b[2m${text}\x1b[22m` : text);
  const origin = `${plain(result.source)}  (${places.join(", ")})`;
  return `${number}. ${bold(place)}\n   ${highlighted(result, bold)}\n   ${dim(origin)}`;
}

function highlighted({ snippet, highlights }: SearchResult, bold: (text: string) => string): string {
  let text = "";
  let at = 0;
  for (const [start, end] of highlights) {
    text += plain(snippet.slice(at, start)) + bold(plain(snippet.slice(start, end)));
    at = end;
  }
  return (text + plain(snippet.slice(at))).replaceAll(/\s*\n\s*/g, " ");
}
