import { z } from "@hono/zod-openapi";
import { QuarryError } from "../errors.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";

const Lane = z
  .strictObject({
    name: z.string(),
    isPaused: z.boolean().describe("It starts nothing more, in any process."),
  })
  .openapi("Lane");

export function addLaneRoutes(api: Api, { quarry: { lanes } }: ApiParts): void {
  api.route(
    {
      method: "get",
      path: "/lanes",
      scope: "read",
      tag: "Lanes",
      summary: "Lists the lanes and whether they rest",
      answers: { 200: json("Every lane", z.strictObject({ lanes: z.array(Lane) })) },
    },
    async () => {
      const paused = await lanes.paused();
      const list = lanes.names.map((name) => ({ name, isPaused: paused.has(name) }));
      return reply(200, { lanes: list });
    },
  );
  for (const verb of ["pause", "resume"] as const) {
    api.route(
      {
        method: "post",
        path: `/lanes/{name}/${verb}`,
        scope: "write",
        tag: "Lanes",
        summary: verb === "pause" ? "Lets a lane rest" : "Lets a lane go on",
        description:
          verb === "pause"
            ? "It starts nothing more, in any process; what runs is finished."
            : "It goes on, in every process that runs it.",
        params: z.strictObject({ name: z.string().min(1).max(200).openapi({ example: "chunks.vector" }) }),
        answers: { 200: json("The lane as it is now", Lane) },
        problems: ["not_found"],
      },
      async ({ params: { name } }) => {
        if (!lanes.names.includes(name))
          throw new QuarryError("not_found", `there is no such lane; there are ${lanes.names.join(", ")}`);
        await lanes[verb](name);
        return reply(200, { name, isPaused: verb === "pause" });
      },
    );
  }
}
