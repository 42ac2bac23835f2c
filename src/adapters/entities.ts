export interface FoundEntity {
  readonly name: string;
  /** person, organization, place, product, event, concept, … in lower case. */
  readonly type: string;
  /** 0 to 1. */
  readonly confidence: number;
  /** Where it stands in the text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

export interface FoundRelation {
  /** Positions in the list of entities. */
  readonly source: number;
  readonly target: number;
  /** A verb or a noun in lower case: "founded", "works_at"; "related_to" when only nearness tells. */
  readonly type: string;
  readonly confidence: number;
  /** The stretch of text that says so. */
  readonly start: number;
  readonly end: number;
}

export interface Extraction {
  readonly entities: readonly FoundEntity[];
  readonly relations: readonly FoundRelation[];
  /** What a model read and wrote for it, in its own count. Extractors that count nothing leave it out. */
  readonly tokens?: number;
}

/** Finds what a text is about and how those things belong together. */
export interface EntityExtractor {
  /** Changes whenever the same text may give other entities. */
  readonly model: string;
  /** How many texts it is best given together: what fails is asked again, and nothing beside it. */
  readonly textsMax: number;
  /** How many calls at once do it good. */
  readonly callsMax: number;
  extract(texts: readonly string[], signal: AbortSignal): Promise<Extraction[]>;
  close(): Promise<void>;
}
