import type { Command } from "commander";
import { counted } from "./output.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

/** For another embedding model: vectors of two models cannot be compared. */
export function addReindex(program: Command): void {
  withCommonOptions(program.command("reindex"))
    .description(
      "Makes the index anew with the embedder that is set now. Nothing is read again; texts are embedded again.",
    )
    .addHelpText("after", "\nExample:\n  QUARRY_EMBEDDER=ollama:nomic-embed-text quarry reindex && quarry up")
    .action((options: CommonOptions) =>
      withQuarry(
        options,
        async (quarry, output) => {
          const documents = await quarry.reindex();
          output.result(
            { documents },
            `${counted(documents, "document")} will be embedded again: run quarry up. Until then they are not found.`,
          );
        },
        { isReader: true },
      ),
    );
}
