import type { Command } from "commander";
import {
  ENTITY_TYPES,
  type EntityType,
  FUNCTION_TASK_STATUSES,
  type FunctionTaskStatus,
} from "../agents/queue.ts";
import type { FunctionTaskRow } from "../agents/task-rows.ts";
import type { Quarry } from "../app.ts";
import { type Output, plain, shortened, table } from "./output.ts";
import { type CommonOptions, oneOf, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";

interface ListFlags extends CommonOptions {
  readonly status?: string;
  readonly type?: string;
  readonly entity?: string;
  readonly function?: string;
  readonly limit: number;
  readonly after?: string;
}

const ERROR_SHOWN = 60;

/** Steps of agents. */
export function addTasks(program: Command): void {
  const tasks = program
    .command("tasks")
    .description("Function tasks: the steps of agents, one at a time for each planner and worker.")
    .addHelpText("after", "\nExample:\n  quarry tasks list --status FAILED");
  const command = (usage: string, about: string, example: string) =>
    withCommonOptions(tasks.command(usage))
      .description(about)
      .addHelpText("after", `\nExample:\n  quarry tasks ${example}`);
  const reading = { isReader: true };

  command("list", "Lists tasks, newest first.", "list --status FAILED")
    .option("--status <status>", FUNCTION_TASK_STATUSES.join(", "))
    .option("--type <type>", `of one kind of entity: ${ENTITY_TYPES.join(", ")}`)
    .option("--entity <id>", "of one planner or worker")
    .option("--function <name>", "of one function")
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .action((options: ListFlags) =>
      withQuarry(options, (quarry, output) => list(quarry, output, options), reading),
    );
  command("show <id...>", "Shows tasks, with their payloads.", "show 01990b0e…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(
        options,
        async (quarry, output) => {
          for (const id of ids) {
            const task = await quarry.tasks.read(id);
            output.result(task, shown(task));
          }
        },
        reading,
      ),
  );
  command(
    "retry <id...>",
    "Puts failed tasks back into line. Their counts stay; one with no tries left gets one.",
    "retry 01990b0e…",
  ).action((ids: string[], options: CommonOptions) =>
    withQuarry(options, async (quarry, output) => {
      for (const id of ids) {
        const { status } = await quarry.tasks.retry(id);
        output.result({ task_id: id, status }, `${id}: ${status}`);
      }
    }),
  );
  command("cancel <id...>", "Takes tasks back that are not finished.", "cancel 01990b0e…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        for (const id of ids) {
          const verdict = await quarry.tasks.cancel(id);
          output.result({ task_id: id, verdict }, `${id}: ${verdict}`);
        }
      }),
  );
}

async function list(quarry: Quarry, output: Output, flags: ListFlags): Promise<void> {
  const page = await quarry.tasks.list({
    status:
      flags.status === undefined
        ? undefined
        : oneOf<FunctionTaskStatus>(flags.status, FUNCTION_TASK_STATUSES, "status"),
    entity_type: flags.type === undefined ? undefined : oneOf<EntityType>(flags.type, ENTITY_TYPES, "type"),
    entity_id: flags.entity,
    function_name: flags.function,
    limit: flags.limit,
    after: flags.after,
  });
  const rows = page.tasks.map((task) => [
    task.task_id,
    task.status,
    plain(task.function_name),
    `${task.entity_type} ${plain(task.entity_id)}`,
    `${task.retry_count}/${task.max_retries}`,
    shortened(task.error_message ?? "", ERROR_SHOWN),
  ]);
  const head = ["id", "status", "function", "entity", "failures", "what went wrong"];
  const more = page.next === undefined ? "" : `\nMore: --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No tasks." : `${table([head, ...rows])}${more}`);
}

function shown({ payload, ...rest }: FunctionTaskRow): string {
  return table([
    ...Object.entries(rest)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, plain(String(value))]),
    ["payload", shortened(JSON.stringify(payload), 500)],
  ]);
}
