/** How much is measured. */
export interface Scale {
  readonly rounds: number;
  /** Copies of the samples that are taken in each round. */
  readonly copiesPerRound: number;
  /** Copies that are all the same. */
  readonly sameCopies: number;
  readonly scanRounds: number;
  /** Or only a few lines of a scan. */
  readonly isScanWhole: boolean;
  /** Of the long document whose first chunk is waited for. */
  readonly pages: number;
  /** Of the documents whose memory is compared. */
  readonly pagesInMemory: readonly [few: number, many: number];
  readonly chunksSearched: number;
  readonly queries: number;
  /** For peers that take long to answer. */
  readonly peerQueries: number;
}

/** Where measures take place. */
export interface Scene {
  /** On a real disk. */
  readonly folder: string;
  readonly scale: Scale;
}

export const FULL_SCALE: Scale = {
  rounds: 5,
  copiesPerRound: 10,
  sameCopies: 50,
  scanRounds: 2,
  isScanWhole: true,
  pages: 500,
  pagesInMemory: [200, 2_000],
  chunksSearched: 100_000,
  queries: 200,
  peerQueries: 40,
};

export const QUICK_SCALE: Scale = {
  rounds: 1,
  copiesPerRound: 1,
  sameCopies: 2,
  scanRounds: 1,
  isScanWhole: false,
  pages: 20,
  pagesInMemory: [5, 50],
  chunksSearched: 2_000,
  queries: 20,
  peerQueries: 10,
};
