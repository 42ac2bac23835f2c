import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { LegacySystemReport } from "../app.ts";
import { QuarryError } from "../errors.ts";
import type { LegacyTableReport } from "../ingest/legacy.ts";
import { hideSecrets } from "../log.ts";
import { counted, shortened } from "./output.ts";
import { type CommonOptions, databaseFile, withCommonOptions, withQuarry } from "./session.ts";

interface LegacyFlags extends CommonOptions {
  readonly from?: string;
  readonly drop?: boolean;
}

const PROBLEMS_SHOWN = 10;

export function addMigrate(program: Command): void {
  const migrate = withCommonOptions(program.command("migrate"))
    .description(
      "Brings the database up to date. Every command does so when it starts; this one does nothing else.",
    )
    .addHelpText("after", "\nExample:\n  quarry migrate")
    .action((options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        const database = hideSecrets(quarry.settings.databaseUrl);
        const { migrationsApplied: applied } = quarry;
        const done = applied === 0 ? "" : `: ${counted(applied, "migration")} applied`;
        output.result({ database, isUpToDate: true, applied }, `${database} is up to date${done}.`);
      }),
    );
  withCommonOptions(migrate.command("legacy"))
    .description(
      "Brings over what the systems before have left: convert_status, index_status, ocr_details and indexing_details become documents, pages and chunks; the five old queues become items of the unified queue. Can be run twice.",
    )
    .option("--from <url>", "their database (postgres://… or a SQLite file), when it is another one")
    .option("--drop", "drop the old queues of which every row is accounted for")
    .addHelpText("after", "\nExample:\n  quarry migrate legacy --from postgres://localhost/dots_ocr")
    .action((_own: LegacyFlags, command: Command) => {
      // `migrate` is a command itself, and takes the options that both have.
      const options = command.optsWithGlobals<LegacyFlags>();
      refuseMissing(options.from);
      return withQuarry(options, async (quarry, output) => {
        const from = isSame(options.from, quarry.settings.databaseUrl) ? undefined : options.from;
        const isDropping = options.drop === true;
        const report = await quarry.migrateLegacy(from, { isDropping });
        output.result(report, textOf(report, isDropping));
        const isIncomplete = report.queues.some(
          ({ unmapped, isDropped }) => unmapped > 0 || (isDropping && !isDropped),
        );
        if (isIncomplete) process.exitCode = 1;
      });
    });
  addFiles(migrate);
}

/** Whoever has copied them says so here, once; everybody else is refused until their settings say the same. */
function addFiles(migrate: Command): void {
  withCommonOptions(migrate.command("files"))
    .description(
      "Says that the files of documents were moved to where the settings say now (QUARRY_FILES, or the data folder), after they were copied there with their folder-id. Some of the originals are looked for there. Stop all workers and servers first: servers are not noticed.",
    )
    .addHelpText("after", "\nExample:\n  QUARRY_FILES=s3://quarry-files/production quarry migrate files")
    .action((_own: CommonOptions, command: Command) =>
      withQuarry(
        command.optsWithGlobals<CommonOptions>(),
        async ({ settings }, output) => {
          const files = settings.filesUrl ?? resolve(settings.dataFolder);
          const next =
            settings.filesUrl === undefined
              ? `Unset QUARRY_FILES for every process, and let QUARRY_DATA be that folder.`
              : "Set QUARRY_FILES to it for every process.";
          output.result({ files }, `From now on the files are in ${files}. ${next}`);
        },
        { isReader: true, areFilesMoved: true },
      ),
    );
}

/** Opening a SQLite file that is not there would make an empty one. */
function refuseMissing(from: string | undefined): void {
  const file = from === undefined ? undefined : databaseFile(from);
  if (file === undefined || existsSync(file)) return;
  throw new QuarryError("invalid_input", `${file}: no such file; give --from the old database`);
}

/** Two connections to one SQLite file would wait for each other. */
function isSame(from: string | undefined, own: string): boolean {
  if (from === undefined || from === own) return true;
  const [one, other] = [databaseFile(from), databaseFile(own)];
  return one !== undefined && other !== undefined && resolve(one) === resolve(other);
}

function textOf(report: LegacySystemReport, isDropping: boolean): string {
  const lines = report.queues.flatMap((table) => tableLines(table, isDropping));
  const { documents, pages, chunks, alreadyThere, queues } = report;
  if (documents + alreadyThere > 0)
    lines.unshift(
      `${documents} documents, ${pages} pages and ${chunks} chunks brought over; ${alreadyThere} documents were there already.`,
    );
  if (chunks > 0)
    lines.push(
      "Chunks that were brought over are not in this index yet: `quarry documents redo ID --phase vector` makes them searchable here.",
    );
  const isNothing =
    documents === 0 && queues.every(({ brought, merged, finished }) => brought + merged + finished === 0);
  if (isNothing) lines.push("There was nothing new to bring over.");
  return lines.join("\n");
}

function tableLines(table: LegacyTableReport, isDropping: boolean): string[] {
  const { rows, brought, merged, finished, unmapped, alreadyThere, problems } = table;
  const counts = [
    `${brought} brought over`,
    `${merged} merged`,
    `${finished} finished before`,
    ...(unmapped > 0 ? [`${unmapped} could not be mapped`] : []),
    ...(alreadyThere > 0 ? [`${alreadyThere} there already`] : []),
  ];
  const shown = problems.slice(0, PROBLEMS_SHOWN);
  return [
    `${table.table}: ${counted(rows, "row")}: ${counts.join(", ")}; ${fateOf(table, isDropping)}.`,
    ...shown.map(({ key, reason }) => `  ${shortened(key, 100)}: ${shortened(reason, 200)}`),
    ...(problems.length > shown.length ? ["  … and more: see --json and the table legacy_rows"] : []),
  ];
}

function fateOf({ isDropped, isDeprecated }: LegacyTableReport, isDropping: boolean): string {
  if (isDropped) return "the table was dropped";
  if (isDropping) return "it stands, because of what follows";
  return isDeprecated
    ? "the table is marked as deprecated"
    : "this login may not mark the table as deprecated";
}
