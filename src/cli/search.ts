import type { Command } from "commander";
import type { SearchMode, SearchResult } from "../search/search.ts";
import { plain } from "./output.ts";
import { type CommonOptions, keyValue, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";

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
    .option("--limit <count>", "how many at most", wholeNumber, 5)
    .option("--tenant <name>", "whose documents", "default")
    .option("--collection <name>", "only this collection")
    .option("--document <id...>", "only these documents")
    .option("--metadata <key=value>", "only documents with it; may be given several times", keyValue)
    .option("--mode <mode>", "hybrid, vector, keyword or graph", "hybrid")
    .addHelpText("after", '\nExample:\n  quarry search "how long is a blast notice valid"')
    .action((words: string[], options: SearchFlags) =>
      withQuarry(options, async (quarry, output) => {
        const answer = await quarry.search.search({
          query: words.join(" "),
          tenant: options.tenant,
          limit: options.limit,
          mode: options.mode,
          ...(options.collection !== undefined && { collection: options.collection }),
          ...(options.document && { documentIds: options.document }),
          ...(options.metadata && { metadata: options.metadata }),
        });
        for (const warning of answer.warnings) process.stderr.write(`quarry: ${plain(warning)}\n`);
        const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
        const found = answer.results.map((result, index) => shown(result, index + 1, isColoured));
        output.result(
          answer,
          found.length === 0
            ? "Nothing found. Is everything indexed? See quarry status."
            : found.join("\n\n"),
        );
      }),
    );
}

function shown(result: SearchResult, number: number, isColoured: boolean): string {
  const bold = (text: string) => (isColoured ? `\x1b[1m${text}\x1b[22m` : text);
  const place = [result.filename, `page ${result.pageNumber}`, ...result.headingPath].map(plain).join(" › ");
  return `${number}. ${bold(place)}\n   ${highlighted(result, bold)}`;
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
