import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A line to a server that can be cut after a request has arrived and before its answer comes back. */
export interface CutLine {
  readonly url: string;
  /** The next answer is swallowed, and the connection with it. Resolves when that has happened. */
  swallowNext(): Promise<void>;
  close(): Promise<void>;
}

export async function cutLine(target: string): Promise<CutLine> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let onSwallowed: (() => void) | undefined;
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    }
    let isAsked = false;
    near.on("data", (data) => {
      isAsked = onSwallowed !== undefined;
      far.write(data);
    });
    far.on("data", (data) => {
      if (!isAsked || !onSwallowed) return void near.write(data);
      near.destroy();
      far.destroy();
      onSwallowed();
      onSwallowed = undefined;
    });
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    swallowNext: () =>
      new Promise((resolve) => {
        onSwallowed = resolve;
      }),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
