import { parseArgs } from "node:util";
import { openOllamaLlm } from "../../src/adapters/llm/ollama.ts";
import { openDatabase } from "../../src/index.ts";
import { openAskingDesk } from "./asking.ts";

/** Runs the lane of tasks until it is killed. */
const { values } = parseArgs({ options: { url: { type: "string" }, model: { type: "string" } } });
const database = openDatabase(values.url!);
const llm = openOllamaLlm({ host: values.model!, model: "llama-test", timeoutMs: 60_000 });
const desk = await openAskingDesk(
  { database, url: values.url!, folder: "", close: async () => undefined },
  llm,
);
await desk.work();
process.stdout.write("working\n");
