import type { z } from "zod";
import type { Reached } from "./tool-parts.ts";
import type { ReachedItem } from "./waiting.ts";
import { oneLine } from "./words.ts";

/** What became of one text or file. */
export interface SingleOutcome {
  readonly text: string;
  readonly status: z.output<typeof Reached>;
  readonly isSearchable: boolean;
  readonly isError: boolean;
  readonly document_id?: string;
  readonly change?: string;
  readonly error?: string;
}

export function singleOutcome(id: string, { item, working }: ReachedItem): SingleOutcome {
  const error = item?.error_message ?? undefined;
  const base = { isSearchable: false, isError: false };
  const status = item?.status ?? "cancelled";
  switch (status) {
    case "done": {
      const { document_id: document, change, state } = item?.result ?? {};
      const isSearchable = state !== "gone";
      const part = state === "partly" ? " in part; show_document says what failed" : "";
      const text = isSearchable
        ? `Done: document ${document} can be searched${part}. (queue id ${id})`
        : `Document ${document} was deleted or replaced while it was worked on. (queue id ${id})`;
      return {
        ...base,
        ...{ text, status, isSearchable, document_id: String(document), change: String(change) },
      };
    }
    case "failed": {
      const reason = oneLine(error ?? "no reason is known", 1_000);
      const text = `It failed: ${reason}\nMend what is said there, then use retry_queue_item with id ${id} or add it again.`;
      return { ...base, text, status, isError: true, error: reason };
    }
    case "cancelled":
      return { ...base, text: `Somebody cancelled it. (queue id ${id})`, status };
    case "pending":
    case "in_progress": {
      const last = error === undefined ? "" : ` The last try failed: ${oneLine(error)}.`;
      const text = `${openText(status, working)}${last} It is kept and goes on by itself; show_queue_item with id ${id} says how far it is.`;
      return { ...base, text, status };
    }
    default:
      return status satisfies never;
  }
}

export function openText(status: "pending" | "in_progress", working: ReachedItem["working"]): string {
  if (working.by === "nobody") return `It is in the queue, but nobody works: ${working.why}.`;
  return status === "pending" ? "It is in the queue." : "It is still being worked on.";
}
