import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** How a network goes away: it says so, or it swallows everything and says nothing. */
export const CUTS = ["reset", "black hole"] as const;
export type Cut = (typeof CUTS)[number];

/** A line to a server that can be cut and mended. */
export interface CuttableLine {
  readonly url: string;
  cut(how: Cut): void;
  /** What was sent into a black hole and is still wanted arrives late, as it does on a real network. */
  mend(): void;
  close(): Promise<void>;
}

export async function cuttableLine(target: string): Promise<CuttableLine> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let state: Cut | "open" = "open";
  let onMended: (() => void)[] = [];
  const server = createServer({ allowHalfOpen: false }, (near) => {
    const far = connect(Number(to.port), to.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    }
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    const join = () => {
      near.on("data", (bytes) => far.write(bytes));
      far.on("data", (bytes) => near.write(bytes));
    };
    if (state === "reset") near.resetAndDestroy();
    else if (state === "black hole") onMended.push(join);
    else join();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href.replace(/\/$/, target.endsWith("/") ? "/" : ""),
    cut: (how) => {
      state = how;
      for (const socket of sockets) {
        if (how === "reset") socket.resetAndDestroy();
        else socket.pause();
      }
    },
    mend: () => {
      state = "open";
      for (const joined of onMended.splice(0)) joined();
      onMended = [];
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
