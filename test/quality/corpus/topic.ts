/** A short text and what somebody might ask to find it, in other words than its own where possible. */
export interface TopicPassage {
  readonly text: string;
  readonly asks?: readonly string[];
}

export interface Topic {
  readonly name: string;
  readonly passages: readonly TopicPassage[];
}
