import { randomUUID } from "node:crypto";
import type { Llm } from "../../src/adapters/llm.ts";
import { Asks } from "../../src/agents/ask.ts";
import type { Scope } from "../../src/agents/catalogue.ts";
import { agentFunctions } from "../../src/agents/functions/all.ts";
import type { Found } from "../../src/agents/functions/parts.ts";
import { Planners } from "../../src/agents/planners.ts";
import type { AgentFunction, FunctionResult, FunctionTask } from "../../src/agents/registry.ts";
import type { FoundPassage } from "../../src/agents/results.ts";
import { openCatalogueReader } from "../../src/agents/sql-reader.ts";
import type { TestDatabase } from "../support/databases.ts";
import { type Office, openOffice } from "./office.ts";

/** The six functions on one database, with a search that finds what the test says. */
export interface AskingDesk extends Office {
  readonly planners: Planners;
  readonly asks: Asks;
  llm: Llm | undefined;
  retrieve: (question: string, scope: Scope, signal: AbortSignal) => Promise<Found>;
  /** Runs a function alone, as its lane would, without settling anything. */
  run(name: string, entityId: string, more?: Partial<FunctionTask>): Promise<FunctionResult | undefined>;
  /** Runs it and writes down what it leaves behind. */
  complete(name: string, entityId: string, payload?: object): Promise<FunctionResult | undefined>;
  close(): Promise<void>;
}

export async function openAskingDesk(test: TestDatabase, llm?: Llm): Promise<AskingDesk> {
  const { database, url } = test;
  const office = await openOffice(test);
  const planners = new Planners(database);
  const reader = openCatalogueReader({ url, database });
  const functions = agentFunctions({
    database,
    planners,
    reader,
    get llm() {
      return desk.llm;
    },
    retrieve: (...asked) => desk.retrieve(...asked),
  });
  for (const declared of functions) office.registry.register(declared);
  const run = async (name: string, entityId: string, more: Partial<FunctionTask> = {}) => {
    const declared = functions.find((one) => one.name === name) as AgentFunction;
    const { entityType } = declared;
    const payload = declared.payload.parse(more.payload ?? {});
    const { signal } = new AbortController();
    const task = { taskId: randomUUID(), entityType, entityId, attempt: 1, attemptsMax: 3, signal };
    return (await declared.run({ ...task, ...more, payload })) ?? undefined;
  };
  const desk: AskingDesk = Object.assign(office, {
    planners,
    llm,
    asks: new Asks({ database, planners, tasks: office.tasks }),
    retrieve: async () => ({ passages: [], warnings: [] }),
    run,
    complete: async (name: string, entityId: string, payload: object = {}) => {
      const result = await run(name, entityId, { payload });
      await database.transaction(async (transaction) => {
        await result?.also?.(transaction);
        await office.tasks.within(transaction).enqueue(result?.next ?? []);
      });
      return result;
    },
    close: () => reader.close(),
  });
  return desk;
}

export function passage(content: string, more: Partial<FoundPassage> = {}): FoundPassage {
  return {
    document_id: randomUUID(),
    chunk_id: randomUUID().slice(0, 8),
    filename: "stones.md",
    title: null,
    page_number: 1,
    content,
    quote: content,
    relevance: 1,
    ...more,
  };
}
