/** What a file may cost before it is refused. */
export interface ReaderLimits {
  readonly fileMb: number;
  readonly pagesMax: number;
  /** Of one picture, width times height. */
  readonly pixelsMax: number;
}

export const DEFAULT_LIMITS: ReaderLimits = {
  fileMb: 512,
  pagesMax: 10_000,
  // A4 at 600 dpi has 35 million.
  pixelsMax: 50_000_000,
};
