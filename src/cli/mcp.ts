import { once } from "node:events";
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { createLog } from "../log.ts";
import type { ProtocolOutput } from "../mcp/stdio.ts";
import { untilSignal } from "./serve.ts";
import { withQuarry } from "./session.ts";

const HELP = `
A client starts it by itself. Its configuration, such as mcp.json, names the command:
  {
    "mcpServers": {
      "quarry": {
        "command": "quarry",
        "args": ["mcp", "--data", "/absolute/path/to/.quarry"]
      }
    }
  }

It speaks the Model Context Protocol on standard input and output; logs go to standard error.
While no worker runs, it does the work itself.`;

export function addMcp(program: Command): void {
  program
    .command("mcp")
    .description("Lets an assistant search, add to and look after the documents (MCP over stdio).")
    .option("--data <folder>", "the data folder (default: QUARRY_DATA or .quarry)")
    .addHelpText("after", HELP)
    .action((options: { data?: string }) => {
      const output = takeStdout();
      return withQuarry({ ...options, json: false }, async (quarry) => {
        const { serveStdio } = await import("../mcp/stdio.ts");
        const stopping = new AbortController();
        void untilSignal().then(() => stopping.abort());
        // Nobody reads any more, so nobody asks either.
        process.stdout.once("error", () => stopping.abort());
        const log = createLog({ level: quarry.settings.logLevel });
        const input = process.stdin;
        await serveStdio({ quarry, input, output, log, clock: systemClock, stopping: stopping.signal });
        input.destroy();
      });
    });
}

/** Standard output belongs to the protocol: what anything else writes there goes to standard error. */
function takeStdout(): ProtocolOutput {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return {
    write: (text) => {
      if (stdout.writable) write(text);
    },
    drained: async (signal) => {
      if (stdout.writableNeedDrain) await once(stdout, "drain", { signal });
    },
  };
}
