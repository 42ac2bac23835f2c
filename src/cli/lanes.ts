import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { type Output, table } from "./output.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

export function addLanes(program: Command): void {
  const lanes = program
    .command("lanes")
    .description("Lists lanes, lets them rest and go on, in every process.")
    .addHelpText("after", "\nExample:\n  quarry lanes pause chunks.graphrag");
  withCommonOptions(lanes.command("list"))
    .description("Lists the lanes.")
    .addHelpText("after", "\nExample:\n  quarry lanes list")
    .action((options: CommonOptions) => withQuarry(options, list, { isReader: true }));
  for (const verb of ["pause", "resume"] as const) {
    withCommonOptions(lanes.command(`${verb} <lane...>`))
      .description(verb === "pause" ? "Starts nothing more; what runs is finished." : "Goes on.")
      .addHelpText("after", `\nExample:\n  quarry lanes ${verb} chunks.graphrag`)
      .action((names: string[], options: CommonOptions) =>
        withQuarry(options, async (quarry, output) => {
          for (const name of names) {
            await quarry.lanes[verb](name);
            output.result(
              { name, isPaused: verb === "pause" },
              `${name}: ${verb === "pause" ? "paused" : "running"}`,
            );
          }
        }),
      );
  }
}

async function list(quarry: Quarry, output: Output): Promise<void> {
  const paused = await quarry.lanes.paused();
  const lanes = quarry.lanes.names.map((name) => ({ name, isPaused: paused.has(name) }));
  const rows = lanes.map(({ name, isPaused }) => [name, isPaused ? "paused" : "not paused"]);
  output.result(lanes, table([["lane", "state"], ...rows]));
}
