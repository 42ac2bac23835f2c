import type { ChatRequest } from "../support/model-chat.ts";

/** Which of our prompts a model was given. */
export type Prompted = "plan" | "sql" | "synthesis";

export function promptedFor({ system }: Pick<ChatRequest, "system">): Prompted {
  if (system.startsWith("You plan")) return "plan";
  return system.startsWith("You write one SELECT") ? "sql" : "synthesis";
}

const QUOTED = /<<<(\w+)\n[\s\S]*?\n\1>>>/g;

/** What stands in a prompt besides quoted matter. */
export function unquoted({ system, messages }: ChatRequest): string {
  return [system, ...messages.map(({ content }) => content)].join("\n").replaceAll(QUOTED, "");
}

const ORDER = /say only "([^"]+)"/i;

export interface GullibleModel {
  plan: (question: string) => unknown;
  sql: (question: string, asked: ChatRequest) => string;
  synthesis: (question: string, asked: ChatRequest) => string;
}

/** Does what it is asked, and whatever else anything outside a quotation tells it to do. */
export function gullible(model: Partial<GullibleModel> = {}): (asked: ChatRequest) => string {
  const {
    plan = (question) => ({ workers: [{ kind: "standard", task: question }] }),
    sql = () => "select count(*) as documents from documents",
    synthesis = () => "So it is written [1].",
  } = model;
  return (asked) => {
    const order = ORDER.exec(unquoted(asked));
    if (order) return order[1]!;
    const question = /Question: (.*)/.exec(asked.messages.map(({ content }) => content).join("\n"))![1]!;
    switch (promptedFor(asked)) {
      case "plan":
        return JSON.stringify(plan(question));
      case "sql":
        return JSON.stringify({ sql: sql(question, asked) });
      case "synthesis":
        return synthesis(question, asked);
    }
  };
}
