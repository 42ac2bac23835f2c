import { existsSync } from "node:fs";
import type { Command } from "commander";
import { loadSettings, type SettingProblem, type SettingSource } from "../config.ts";
import type { Finding } from "../doctor/finding.ts";
import { table } from "./output.ts";
import { type CommonOptions, databaseFile, outputOf, withCommonOptions } from "./session.ts";

const MARKS = { ok: "ok", warning: "!", failed: "FAILED" } as const;

export function addDoctor(program: Command): void {
  withCommonOptions(program.command("doctor"))
    .description("Looks at every part that is configured, and says what is wrong and how to mend it.")
    .option("--settings", "also show each setting and where it comes from; secrets stay hidden", false)
    .addHelpText("after", "\nExample:\n  quarry doctor --settings")
    .action(async (options: CommonOptions & { settings: boolean }) => {
      const given = options.data === undefined ? {} : { dataFolder: options.data };
      const problems: SettingProblem[] = [];
      const onProblem = (problem: SettingProblem) => void problems.push(problem);
      const { settings, sources, warnings } = loadSettings({ given, onProblem });
      const output = outputOf(options);
      const file = databaseFile(settings.databaseUrl);
      const isMade = file === undefined || existsSync(file);
      const { examine } = await import("../doctor.ts");
      const findings: Finding[] = [];
      if (options.settings) output.line(`${table(sources.map(row))}\n`);
      for (const warning of warnings) output.line(`  ${MARKS.warning}  ${warning}`);
      for await (const found of examine(settings, { isMade, problems })) {
        findings.push(found);
        output.line(table([[MARKS[found.health].padEnd(6), found.part.padEnd(24), found.said]]));
      }
      const failed = findings.filter(({ health }) => health === "failed");
      const shown = findings.map(({ exitCode: _, ...finding }) => finding);
      output.result(
        { parts: shown, warnings, ...(options.settings && { settings: sources }) },
        failed.length === 0
          ? "\nAll parts answer."
          : `\n${failed.length} of ${findings.length} parts ${failed.length === 1 ? "does" : "do"} not work.`,
      );
      process.exitCode = Math.max(0, ...failed.map(({ exitCode }) => exitCode));
    });
}

function row({ name, value, from }: SettingSource): string[] {
  return [name, value === undefined ? "–" : String(value), from];
}
