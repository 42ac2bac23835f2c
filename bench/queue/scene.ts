/** How much is measured. */
export interface Scale {
  /** Tasks of a drain, and how many of them are enqueued one at a time before it. */
  readonly tasks: number;
  readonly singles: number;
  /** Done by everybody before the first round, for the compiler to have seen everything. Not counted. */
  readonly warmUp: { readonly tasks: number; readonly singles: number };
  readonly rounds: number;
  readonly latencySamples: number;
  /** From small to large; the growth between the first and the last is what counts. */
  readonly backlogs: readonly number[];
  readonly siblings: readonly number[];
  readonly waitingInGroup: number;
  /** How often one operation is timed. */
  readonly samples: number;
}

/** Where measures take place. */
export interface Scene {
  /** A PostgreSQL database of the benchmark's own. */
  readonly postgresUrl: string;
  /** A folder for SQLite files, on a real disk. */
  readonly folder: string;
  readonly scale: Scale;
}

export const FULL_SCALE: Scale = {
  tasks: 100_000,
  singles: 1_000,
  warmUp: { tasks: 5_000, singles: 100 },
  rounds: 3,
  latencySamples: 300,
  backlogs: [10_000, 100_000, 1_000_000],
  siblings: [10, 1_000, 100_000],
  waitingInGroup: 100_000,
  samples: 150,
};

export const QUICK_SCALE: Scale = {
  tasks: 5_000,
  singles: 50,
  warmUp: { tasks: 100, singles: 10 },
  rounds: 1,
  latencySamples: 10,
  backlogs: [2_000, 20_000],
  siblings: [10, 1_000, 20_000],
  waitingInGroup: 10_000,
  samples: 20,
};
