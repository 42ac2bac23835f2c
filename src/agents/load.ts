import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { messageOf, QuarryError } from "../errors.ts";
import { ENTITY_TYPES } from "./queue.ts";
import type { AgentFunction } from "./registry.ts";

/** A module is somebody else's code: looked at before it is relied on. */
const moduleSchema = z.object({
  functions: z.array(
    z.looseObject({
      name: z.string(),
      entityType: z.enum(ENTITY_TYPES),
      payload: z.custom((value) => typeof (value as z.ZodType | undefined)?.safeParse === "function", {
        message: "give a zod schema",
      }),
      run: z.custom((value) => typeof value === "function", { message: "give a function" }),
    }),
  ),
});

/** Functions of one's own, for the commands and the server: a module that exports them as `functions`. */
export async function loadFunctions(path: string | undefined): Promise<readonly AgentFunction[]> {
  if (path === undefined) return [];
  const refused = (why: string, cause?: unknown) =>
    new QuarryError("invalid_input", `QUARRY_FUNCTIONS: ${path}: ${why}`, { cause });
  const loaded: unknown = await import(pathToFileURL(resolve(path)).href).catch((error) => {
    throw refused(messageOf(error), error);
  });
  const parsed = moduleSchema.safeParse({ ...(loaded as object) });
  if (!parsed.success) {
    const { path: where, message } = parsed.error.issues[0]!;
    throw refused(`it must export functions, each made by defineFunction (${where.join(".")}: ${message})`);
  }
  return parsed.data.functions as unknown as readonly AgentFunction[];
}
