import { type Command, InvalidArgumentError } from "commander";
import type { Quarry } from "../app.ts";
import { PHASES, type Phase, TASK_STATUSES, type TaskStatus } from "../documents/queues.ts";
import {
  DOCUMENT_STATES,
  type DocumentDetails,
  type DocumentFailure,
  type DocumentState,
  type DocumentSummary,
} from "../documents/views.ts";
import { type Status, waitsOf } from "../status.ts";
import { machineCell } from "./machines.ts";
import { counted, type Output, plain, shortened, shortenedPath, table } from "./output.ts";
import { type CommonOptions, idsOf, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";
import { waitRows } from "./status.ts";

interface ListFlags extends CommonOptions {
  readonly tenant?: string;
  readonly collection?: string;
  readonly machine?: string;
  readonly state?: DocumentState;
  readonly ocr?: TaskStatus;
  readonly vector?: TaskStatus;
  readonly graphrag?: TaskStatus;
  readonly name?: string;
  readonly limit: number;
  readonly after?: string;
}

export function addDocuments(program: Command): void {
  const documents = program
    .command("documents")
    .description("Lists documents and does things with them.")
    .addHelpText(
      "after",
      "\nExample:\n  quarry documents list --state failed\n  quarry documents retry 01990b0e-7c1a",
    );
  const statuses = TASK_STATUSES.join(", ");
  withCommonOptions(documents.command("list"))
    .description("Lists documents, newest first.")
    .option("--state <state>", DOCUMENT_STATES.join(", "))
    .option("--tenant <name>", "of one tenant")
    .option("--collection <name>", "of one collection")
    .option("--machine <name>", "whose paths are on one machine")
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

  addEach(documents, {
    name: "show",
    about: "Shows a document: how far it is, what failed and why.",
    work: async (quarry, output, id) => {
      const details = await quarry.documents.show(id);
      const isOpen = details.state === "queued" || details.state === "working";
      const waits = isOpen ? waitsOf(await quarry.workers()) : [];
      output.result(details, shown(details, waits));
    },
  });
  addEach<PhaseFlags>(documents, {
    name: "retry",
    about: "Tries again what failed, and nothing else.",
    work: async (quarry, output, id, { phase }) => {
      const tasks = await quarry.documents.retry(id, { phase });
      const text = tasks === 0 ? "nothing had failed" : `${counted(tasks, "task")} will be tried again`;
      output.result({ id, retried: tasks }, `${id}: ${text}`);
    },
  }).option("--phase <phase>", `only one: ${PHASES.join(", ")}`, checkedPhase);
  addEach<Required<PhaseFlags>>(documents, {
    name: "redo",
    about: "Does a phase again, and the phases after it.",
    example: "redo 01990b0e-7c1a --phase vector",
    work: async (quarry, output, id, { phase }) => {
      await quarry.documents.redo(id, phase);
      output.result({ id, redone: phase }, `${id}: will be done again from ${phase} on`);
    },
  }).requiredOption("--phase <phase>", `from which one on: ${PHASES.join(", ")} (required)`, checkedPhase);
  addEach(documents, {
    name: "cancel",
    about: "Stops the work on a document. What is done stays; a retry goes on.",
    work: async (quarry, output, id) => {
      const { waiting, running } = await quarry.documents.cancel(id);
      const isTooLate = waiting + running === 0;
      const text = isTooLate
        ? "too late, nothing was left to do"
        : `${waiting} waiting and ${running} running tasks stopped`;
      output.result({ id, waiting, running }, `${id}: ${text}`);
      if (isTooLate) process.exitCode = 1;
    },
  });
  addEach(documents, {
    name: "delete",
    about: "Deletes a document and everything that was made of it.",
    work: async (quarry, output, id) => {
      await quarry.documents.delete(id);
      output.result({ id, deleted: true }, `${id}: deleted; a worker clears the index`);
    },
  });
}

interface PhaseFlags extends CommonOptions {
  readonly phase?: Phase;
}

interface Each<Flags> {
  readonly name: string;
  readonly about: string;
  readonly example?: string;
  work(quarry: Quarry, output: Output, id: string, options: Flags): Promise<void>;
}

/** A command that does one thing with each of the documents that are named. */
function addEach<Flags extends CommonOptions = CommonOptions>(
  documents: Command,
  each: Each<Flags>,
): Command {
  const example = each.example ?? `${each.name} 01990b0e-7c1a`;
  return withCommonOptions(documents.command(`${each.name} <id...>`))
    .description(`${each.about} Of an id, a beginning that no other has will do.`)
    .addHelpText("after", `\nExample:\n  quarry documents ${example}`)
    .action((given: string[], options: Flags) =>
      withQuarry(
        options,
        async (quarry, output) => {
          for (const id of await idsOf(quarry, given)) await each.work(quarry, output, id, options);
        },
        { isReader: true },
      ),
    );
}

async function list(quarry: Quarry, output: Output, options: ListFlags): Promise<void> {
  const page = await quarry.documents.list({ ...options, seenOn: options.machine });
  const machineOf = machineCell(
    quarry,
    page.documents.map(({ seenOn }) => seenOn),
  );
  const rows = page.documents.map((document) => [
    document.id,
    stateOf(document),
    document.pages === null ? "-" : String(document.pages),
    String(document.chunks),
    placeOf(document),
    ...machineOf(document.seenOn),
    shortenedPath(document.source, 50),
    shortened(noteOn(document), 60),
  ]);
  const header = ["id", "state", "pages", "chunks", "collection", ...machineOf("machine"), "file", "note"];
  const more = page.next === undefined ? "" : `\nMore: add --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No documents." : table([header, ...rows]) + more);
}

function stateOf({ state, replacedBy }: DocumentSummary): string {
  return replacedBy ? `${state} (old)` : state;
}

function placeOf({ tenant, collection }: DocumentSummary): string {
  return tenant === "default" ? collection : `${tenant} / ${collection}`;
}

/** What is worth knowing beside the state. */
export function noteOn({ state, chunks, error }: DocumentSummary): string {
  return state === "completed" && chunks === 0 ? "no text found" : (error ?? "");
}

function shown(document: DocumentDetails, waits: Status["waits"]): string {
  const counts = (phase: Phase) => {
    const { total, completed, failed, processing } = document[phase];
    const tokens = document.tokens[phase];
    const said = [`${completed} of ${total} done`];
    if (processing > 0) said.push(`${processing} running`);
    if (failed > 0) said.push(`${failed} failed`);
    if (tokens > 0) said.push(counted(tokens, "token"));
    return said.join(", ");
  };
  const note = noteOn(document);
  const pages = document.pages === null ? "? pages" : counted(document.pages, "page");
  const rows = [
    ["id", document.id],
    ["file", plain(document.filename)],
    ["title", plain(document.title ?? "-")],
    ["source", plain(document.source)],
    ...(document.seenOn === null ? [] : [["machine", plain(document.seenOn)]]),
    ["tenant", `${document.tenant} / ${document.collection}`],
    ["metadata", plain(JSON.stringify(document.metadata))],
    ["taken in", document.createdAt],
    ["kind", [document.mediaType ?? "?", counted(document.sizeBytes, "byte"), pages].join(", ")],
    ["state", stateOf(document)],
    ["ocr", `${document.ocrStatus.padEnd(10)} ${counts("ocr")}`],
    ["vector", `${document.vectorStatus.padEnd(10)} ${counts("vector")}`],
    ["graphrag", `${document.graphragStatus.padEnd(10)} ${counts("graphrag")}`],
    ...waitRows(waits),
    // What failed for good stands below.
    ...(document.failures.length === 0 && note !== "" ? [["note", plain(note)]] : []),
  ];
  // The same sentence for hundreds of chunks is one line.
  const groups = Map.groupBy(document.failures, (failure) => `${failure.phase} ${reasonOf(failure)}`);
  const failures = [...groups.values()].map((group) => {
    const { phase, pageNumber, chunkIndex } = group[0]!;
    const chunk = chunkIndex === null ? "" : `, chunk ${chunkIndex}`;
    const place = pageNumber === null ? "document" : `page ${pageNumber}${chunk}`;
    const more = group.length > 1 ? ` and ${group.length - 1} more` : "";
    return [phase, `${place}${more}`, shortened(reasonOf(group[0]!), 120)];
  });
  return `${table(rows)}${failures.length > 0 ? `\nFailed:\n${table(failures)}` : ""}`;
}

/** Without the page, which is said beside it. */
function reasonOf({ error }: DocumentFailure): string {
  return error?.replace(/^page \d+: /, "") ?? "";
}

function checkedPhase(phase: string): Phase {
  if ((PHASES as readonly string[]).includes(phase)) return phase as Phase;
  throw new InvalidArgumentError(`It is one of ${PHASES.join(", ")}.`);
}
