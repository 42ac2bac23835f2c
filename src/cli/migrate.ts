import { existsSync } from "node:fs";
import type { Command } from "commander";
import { QuarryError } from "../errors.ts";
import { hideSecrets } from "../log.ts";
import { type CommonOptions, databaseFile, withCommonOptions, withQuarry } from "./session.ts";

export function addMigrate(program: Command): void {
  const migrate = withCommonOptions(program.command("migrate"))
    .description(
      "Brings the database up to date. Every command does so when it starts; this one does nothing else.",
    )
    .addHelpText("after", "\nExample:\n  quarry migrate")
    .action((options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        const database = hideSecrets(quarry.settings.databaseUrl);
        output.result({ database, isUpToDate: true }, `${database} is up to date.`);
      }),
    );
  withCommonOptions(migrate.command("legacy"))
    .description(
      "Turns convert_status, index_status, ocr_details and indexing_details of the system before into documents, pages and chunks. Can be run twice.",
    )
    .option("--from <url>", "its database (postgres://… or a SQLite file), when it is another one")
    .addHelpText("after", "\nExample:\n  quarry migrate legacy --from postgres://localhost/dots_ocr")
    .action((options: CommonOptions & { from?: string }) => {
      refuseMissing(options.from);
      return withQuarry(options, async (quarry, output) => {
        const report = await quarry.migrateLegacy(options.from);
        const { documents, pages, chunks, alreadyThere } = report;
        output.result(
          report,
          `${documents} documents, ${pages} pages and ${chunks} chunks brought over; ${alreadyThere} documents were there already.${chunks > 0 ? "\nTheir chunks are not in this index yet: `quarry documents redo ID --phase vector` makes them searchable here." : ""}`,
        );
      });
    });
}

/** Opening a SQLite file that is not there would make an empty one. */
function refuseMissing(from: string | undefined): void {
  const file = from === undefined ? undefined : databaseFile(from);
  if (file === undefined || existsSync(file)) return;
  throw new QuarryError("invalid_input", `${file}: no such file; give --from the old database`);
}
