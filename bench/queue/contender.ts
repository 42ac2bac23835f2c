export interface Payload {
  readonly n: number;
  /** On the machine's monotonic clock, which processes share; only where latency is measured. */
  readonly sentAtMs?: number;
}

/** A queue that takes part, with one choice of settings. */
export interface Contender {
  readonly name: string;
  /** Leaves an empty queue, as after a first installation. */
  reset(): Promise<void>;
  connect(): Promise<Connection>;
}

export interface Connection {
  addOne(payload: Payload): Promise<unknown>;
  addMany(payloads: readonly Payload[]): Promise<unknown>;
  /** Brings the store to the same state before every drain: vacuumed, analyzed, checkpointed. */
  settleDown(): Promise<void>;
  work(handle: (payload: Payload) => void): Promise<Work>;
  /** How many tasks are not done. */
  countLeft(): Promise<number>;
  close(): Promise<void>;
}

export interface Work {
  /** Resolves when everything that was handled is written down as done. */
  stop(): Promise<void>;
}

/** Peers are installed under bench/ only, so the compiler must not look for their types. */
export async function loadPeer<Module>(name: string): Promise<Module> {
  return (await import(name)) as Module;
}

/** Milliseconds of the machine's monotonic clock: comparable between processes. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
