import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Peer } from "./hosts.ts";
import type { Caller } from "./keys.ts";

/** What guards find out about a request, for those after them. */
export interface ApiEnv {
  /** There where the request came by a socket. */
  Bindings: Partial<HttpBindings>;
  Variables: {
    requestId: string;
    /** The declared path, such as /documents/{id}; the only form in which a path is logged or counted. */
    route: string;
    peer: Peer;
    caller: Caller;
  };
}

export type ApiContext = Context<ApiEnv>;
export const UNMATCHED = "unmatched";
