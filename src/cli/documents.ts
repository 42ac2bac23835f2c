import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { PHASES, type Phase, TASK_STATUSES, type TaskStatus } from "../documents/queues.ts";
import { DOCUMENT_STATES, type DocumentDetails, type DocumentState } from "../documents/views.ts";
import { QuarryError } from "../errors.ts";
import { type Output, plain, shortened, table } from "./output.ts";
import { type CommonOptions, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";

interface ListFlags extends CommonOptions {
  readonly tenant?: string;
  readonly collection?: string;
  readonly state?: DocumentState;
  readonly ocr?: TaskStatus;
  readonly vector?: TaskStatus;
  readonly graphrag?: TaskStatus;
  readonly name?: string;
  readonly limit: number;
  readonly after?: string;
}

export function addDocuments(program: Command): void {
  const documents = program.command("documents").description("Lists documents and does things with them.");
  const statuses = TASK_STATUSES.join(", ");
  withCommonOptions(documents.command("list"))
    .description("Lists documents, newest first.")
    .option("--state <state>", DOCUMENT_STATES.join(", "))
    .option("--tenant <name>", "of one tenant")
    .option("--collection <name>", "of one collection")
    .option("--name <text>", "part of the file's name, title or source")
    .option("--ocr <status>", statuses)
    .option("--vector <status>", statuses)
    .option("--graphrag <status>", statuses)
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .addHelpText("after", "\nExample:\n  quarry documents list --state failed")
    .action((options: ListFlags) =>
      withQuarry(options, (quarry, output) => list(quarry, output, options), { isReader: true }),
    );

  const one = (name: string, about: string, example: string) =>
    withCommonOptions(documents.command(`${name} <id...>`))
      .description(about)
      .addHelpText("after", `\nExample:\n  quarry documents ${example}`);

  one("show", "Shows a document: how far it is, what failed and why.", "show 01990b0e-…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        for (const id of ids) {
          const details = await quarry.documents.show(id);
          output.result(details, shown(details));
        }
      }),
  );
  one("retry", "Tries again what failed, and nothing else.", "retry 01990b0e-…")
    .option("--phase <phase>", `only one: ${PHASES.join(", ")}`)
    .action((ids: string[], options: CommonOptions & { phase?: string }) =>
      withQuarry(options, async (quarry, output) => {
        const phase = options.phase === undefined ? undefined : checkedPhase(options.phase);
        for (const id of ids) {
          const tasks = await quarry.documents.retry(id, { phase });
          const text =
            tasks === 0 ? "nothing had failed" : `${tasks} task${tasks === 1 ? "" : "s"} will be tried again`;
          output.result({ id, retried: tasks }, `${id}: ${text}`);
        }
      }),
    );
  one("redo", "Does a phase again, and the phases after it.", "redo 01990b0e-… --phase vector")
    .requiredOption("--phase <phase>", `from which one on: ${PHASES.join(", ")} (required)`)
    .action((ids: string[], options: CommonOptions & { phase: string }) =>
      withQuarry(options, async (quarry, output) => {
        const phase = checkedPhase(options.phase);
        for (const id of ids) {
          await quarry.documents.redo(id, phase);
          output.result({ id, redone: phase }, `${id}: will be done again from ${phase} on`);
        }
      }),
    );
  one(
    "cancel",
    "Stops the work on a document. What is done stays; a retry goes on.",
    "cancel 01990b0e-…",
  ).action((ids: string[], options: CommonOptions) =>
    withQuarry(options, async (quarry, output) => {
      for (const id of ids) {
        const { waiting, running } = await quarry.documents.cancel(id);
        const isTooLate = waiting + running === 0;
        const text = isTooLate
          ? "too late, nothing was left to do"
          : `${waiting} waiting and ${running} running tasks stopped`;
        output.result({ id, waiting, running }, `${id}: ${text}`);
        if (isTooLate) process.exitCode = 1;
      }
    }),
  );
  one("delete", "Deletes a document and everything that was made of it.", "delete 01990b0e-…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        for (const id of ids) {
          await quarry.documents.delete(id);
          output.result({ id, deleted: true }, `${id}: deleted; a worker clears the index`);
        }
      }),
  );
}

async function list(quarry: Quarry, output: Output, options: ListFlags): Promise<void> {
  const page = await quarry.documents.list(options);
  const rows = page.documents.map((document) => [
    document.id,
    document.replacedBy ? `${document.state} (old)` : document.state,
    document.pages === null ? "-" : `${document.pages} p`,
    `${document.chunks} chunks`,
    shortened(document.filename, 40),
    shortened(document.error ?? "", 60),
  ]);
  const more = page.next === undefined ? "" : `\nMore: add --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No documents." : table(rows) + more);
}

function shown(document: DocumentDetails): string {
  const counts = ({ total, completed, failed, processing }: DocumentDetails["ocr"]) =>
    `${completed} of ${total} done${processing > 0 ? `, ${processing} running` : ""}${failed > 0 ? `, ${failed} failed` : ""}`;
  const rows = [
    ["id", document.id],
    ["file", plain(document.filename)],
    ["title", plain(document.title ?? "-")],
    ["source", plain(document.source)],
    ["tenant", `${document.tenant} / ${document.collection}`],
    ["metadata", plain(JSON.stringify(document.metadata))],
    ["taken in", document.createdAt],
    ["kind", `${document.mediaType ?? "?"}, ${document.sizeBytes} bytes, ${document.pages ?? "?"} pages`],
    ["state", document.state],
    ["ocr", `${document.ocrStatus.padEnd(10)} ${counts(document.ocr)}`],
    ["vector", `${document.vectorStatus.padEnd(10)} ${counts(document.vector)}`],
    ["graphrag", `${document.graphragStatus.padEnd(10)} ${counts(document.graphrag)}`],
    ...(document.pages === null && document.error ? [["error", plain(document.error)]] : []),
  ];
  // The same sentence for hundreds of chunks is one line.
  const groups = Map.groupBy(
    document.failures,
    ({ phase, error }) => `${phase} ${error?.replace(/^page \d+: /, "")}`,
  );
  const failures = [...groups.values()].map((group) => {
    const { phase, pageNumber, chunkIndex, attempts, error } = group[0]!;
    const chunk = chunkIndex === null ? "" : `, chunk ${chunkIndex}`;
    const place = pageNumber === null ? "document" : `page ${pageNumber}${chunk}`;
    const more = group.length > 1 ? ` and ${group.length - 1} more` : "";
    return [phase, `${place}${more}`, `${attempts} tries`, shortened(error ?? "", 120)];
  });
  return `${table(rows)}${failures.length > 0 ? `\nFailed:\n${table(failures)}` : ""}`;
}

function checkedPhase(phase: string): Phase {
  if ((PHASES as readonly string[]).includes(phase)) return phase as Phase;
  throw new QuarryError(
    "invalid_input",
    `--phase is one of ${PHASES.join(", ")}, not ${JSON.stringify(phase)}`,
  );
}
