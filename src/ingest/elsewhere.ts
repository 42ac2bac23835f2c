import type { Job } from "./handle.ts";
import type { Items } from "./items.ts";

/**
 * A path means something on the machine where somebody saw it: under the same path another may have another file.
 * Claims take no row of another machine. But a row may not say whose it is: it is from before, was written by others, or
 * came again from elsewhere while it was worked on. It is told here, once, and given back.
 */
export async function isLeftToOthers(
  { items, machine }: { items: Items; machine: string | undefined },
  { claim, seenOn }: Job,
): Promise<boolean> {
  if (machine === undefined || seenOn === undefined || seenOn === machine) return false;
  await items.reserve(claim, seenOn);
  return true;
}
