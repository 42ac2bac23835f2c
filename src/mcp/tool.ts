import { z } from "zod";
import { type ErrorCode, isQuarryError, messageOf } from "../errors.ts";
import { hideSecrets } from "../log.ts";
import { checkedParams } from "./protocol.ts";

/** What a client is told about a tool. Hints, for whoever decides whether somebody must be asked first. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: false;
}

export interface ProgressReport {
  /** Rises with every report. */
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A call in the hands of its tool. */
export interface ToolCall {
  readonly signal: AbortSignal;
  progress(report: ProgressReport): void;
}

export interface ToolAnswer<Output> {
  /** For models and people to read. */
  readonly text: string;
  /** The same for programs. */
  readonly structured: Output;
  readonly isError?: boolean;
}

interface ToolDeclaration<Input extends z.ZodType, Output extends z.ZodType> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly input: Input;
  readonly output: Output;
  call(args: z.output<Input>, call: ToolCall): Promise<ToolAnswer<z.input<Output>>>;
}

export interface ToolResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly structuredContent?: object;
  readonly isError?: boolean;
}

export interface Tool {
  readonly name: string;
  /** As `tools/list` shows it. */
  readonly shown: object;
  call(args: unknown, call: ToolCall): Promise<ToolResult>;
}

/** A declaration becomes a tool: its arguments are checked, its failures told as results. */
export function defineTool<Input extends z.ZodType, Output extends z.ZodType>(
  tool: ToolDeclaration<Input, Output>,
): Tool {
  const { name, title, description, annotations } = tool;
  return {
    name,
    shown: {
      ...{ name, title, description },
      inputSchema: jsonSchema(tool.input, "input"),
      outputSchema: jsonSchema(tool.output, "output"),
      annotations: { title, ...annotations },
    },
    call: async (given, call) => {
      const args = checkedParams(tool.input, given, "arguments");
      try {
        const { text, structured, isError } = await tool.call(args, call);
        return {
          content: [{ type: "text", text }],
          structuredContent: structured as object,
          ...(isError && { isError }),
        };
      } catch (error) {
        return { content: [{ type: "text", text: failureText(error) }], isError: true };
      }
    },
  };
}

/** Without the dialect: clients differ in the ones they know, and these schemas mean the same in all. */
function jsonSchema(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, ...shown } = z.toJSONSchema(schema, { io });
  return shown;
}

/** Messages name commands; whoever reads this has tools. */
const WHAT_TO_DO: Partial<Record<ErrorCode, string>> = {
  invalid_input: "Correct the arguments and call again.",
  not_found: "Check the id or path; list_documents and list_queue show what there is.",
  too_late: "show_queue_item says how it ended.",
  file_unreadable: "Mend the file, then call again.",
  file_unsupported: "Convert it to a format that is read, such as PDF, DOCX, HTML, Markdown or text.",
  file_too_large: "Split the file, or have the limit raised.",
  disk_full: "Somebody must make room on the disk; nothing that was accepted is lost.",
  database_unavailable: "Call again in a moment; nothing that was accepted is lost.",
  redis_unavailable: "Call again in a moment; nothing that was accepted is lost.",
  commit_unknown: "Look with list_queue whether it was accepted before calling again.",
  model_unavailable: "Call again in a moment, or search with mode keyword.",
  model_failed: "Call again, or search with mode keyword.",
};

function failureText(error: unknown): string {
  const message = hideSecrets(messageOf(error));
  if (!isQuarryError(error)) return `It failed: ${message}\nThe server's standard error may say more.`;
  const hint = WHAT_TO_DO[error.code];
  return hint === undefined ? `It failed: ${message}` : `It failed: ${message}\n${hint}`;
}
