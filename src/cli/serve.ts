import { type Command, InvalidArgumentError } from "commander";
import type { Quarry } from "../app.ts";
import type { HttpServer } from "../http/server.ts";
import { createLog } from "../log.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

export interface ServerFlags {
  readonly host?: string;
  readonly port?: number;
}

const PORT_MAX = 65_535;

/** `serve` answers requests and runs no lanes. */
export function addServe(program: Command): void {
  withServerOptions(withCommonOptions(program.command("serve")))
    .description("Runs the HTTP server alone; workers run elsewhere.")
    .addHelpText("after", "\nExample:\n  quarry serve --port 8080")
    .action((options: CommonOptions & ServerFlags) =>
      withQuarry(options, async (quarry, output) => {
        const server = await startServer(quarry, options);
        // Workers elsewhere may fall silent too.
        quarry.tend();
        output.result({ url: server.url }, `${listening(server)} Ctrl-C stops.${vectorNote(quarry)}`);
        await untilSignal();
        await server.stop();
        output.line("Stopped.");
      }),
    );
}

export function withServerOptions(command: Command): Command {
  return command
    .option("--host <address>", "the address to listen on (default: QUARRY_HOST or 127.0.0.1)")
    .option(
      "--port <number>",
      "the port to listen on, 0 for a free one (default: QUARRY_PORT or 7310)",
      port,
    );
}

export async function startServer(quarry: Quarry, { host, port }: ServerFlags): Promise<HttpServer> {
  const { HttpServer } = await import("../http/server.ts");
  const settings = {
    ...quarry.settings,
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
  };
  return new HttpServer({ quarry, settings, log: createLog({ level: settings.logLevel }) }).listen();
}

/** Said where it matters: people who expect pgvector's operators should know. */
export function vectorNote({ embeddings }: Quarry): string {
  return embeddings.vectorType === "real[]"
    ? "\npgvector is not installed: vectors of embedding jobs are kept as real[]."
    : "";
}

export function listening({ url }: HttpServer): string {
  return `Listening on ${url} (docs at /docs).`;
}

/** Resolves at the first SIGINT or SIGTERM. The next one ends the process as usual. */
export async function untilSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onSignal = () => resolve();
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  await promise;
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
}

function port(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value <= PORT_MAX) return value;
  throw new InvalidArgumentError(`Give a whole number from 0 to ${PORT_MAX}.`);
}
