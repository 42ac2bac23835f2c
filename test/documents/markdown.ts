import fc from "fast-check";

const WORDS =
  "the of and to in is that it was for on are as with they at be this have from one had word but not what all were when your can said there use each which how their will other about out many then them these some would make like into time look two more write see number way could people than first water been call who oil now find long down day get come made may part".split(
    " ",
  );

/** Sentences of made-up English, always the same for the same seed. */
export function prose(words: number, seed: number): string {
  let state = (seed + 1) * 2654435761;
  const draw = (below: number) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
  const sentences: string[] = [];
  for (let left = words; left > 0; ) {
    const length = Math.min(left, 5 + draw(15));
    const text = Array.from({ length }, () => WORDS[draw(WORDS.length)]).join(" ");
    sentences.push(`${text[0]!.toUpperCase()}${text.slice(1)}.`);
    left -= length;
  }
  return sentences.join(" ");
}

const words = fc.integer({ min: 1, max: 120 }).chain((count) => fc.nat().map((seed) => prose(count, seed)));
const odd = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.constantFrom(
    "\ud83d",
    "👩‍👩‍👧‍👧",
    "日本語の文章。".repeat(40),
    "e\u0301",
    "\ufeff",
    "x".repeat(3_000),
    "\u0000",
    "[CLS]",
    "<|endoftext|>",
  ),
);
const inline = fc.oneof({ weight: 3, arbitrary: words }, { weight: 1, arbitrary: odd });
const lines = (mark: string) =>
  fc
    .array(inline, { minLength: 1, maxLength: 20 })
    .map((all) => all.map((text) => `${mark}${text}`).join("\n"));

const block = fc.oneof(
  { weight: 4, arbitrary: inline },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 7 }), inline)
      .map(([n, text]) => `${"#".repeat(n)} ${text}`),
  },
  inline.map((text) => `${text}\n===`),
  lines("- "),
  lines("1. "),
  lines("  * "),
  lines("> "),
  lines("    "),
  lines("").map((code) => `\`\`\`js\n${code}\n\`\`\``),
  lines("").map((code) => `~~~\n${code}`),
  fc
    .array(fc.tuple(inline, inline), { maxLength: 20 })
    .map((rows) => ["| a | b |", "|---|:-:|", ...rows.map(([a, b]) => `| ${a} | ${b} |`)].join("\n")),
  inline.map((text) => `<div>\n${text}\n</div>`),
  inline.map((text) => `<!-- ${text}`),
  inline.map((text) => `[a]: ${text}`),
  fc.constantFrom("---", "***", "|", "```", "- ", ">", "#", "\\"),
);

/** Pages with everything that Markdown has and some things that it has not. */
export const markdownPage = fc
  .tuple(
    fc.array(
      fc.tuple(block, fc.constantFrom("\n\n", "\n\n", "\n", "\n\n\n", "\r\n\r\n", "\r\n", "\r", " ")),
      {
        maxLength: 25,
      },
    ),
    fc.boolean(),
  )
  .map(([blocks, isCrlf]) => {
    const page = blocks.map(([text, end]) => text + end).join("");
    return isCrlf ? page.replaceAll("\n", "\r\n") : page;
  });

export interface Table {
  /** With its ruler. */
  readonly header: string;
  readonly rows: readonly string[];
}

const cell = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 99_999 }).map(String) },
  {
    weight: 6,
    arbitrary: fc.integer({ min: 1, max: 12 }).chain((count) => fc.nat().map((seed) => prose(count, seed))),
  },
  { weight: 1, arbitrary: words },
  fc.constantFrom("", "a \\| b", "`code`", "x".repeat(400), "日本語"),
);

/** Pages that are one table. */
export const tablePage = fc.integer({ min: 1, max: 9 }).chain((columns) => {
  const row = fc
    .array(cell, { minLength: columns, maxLength: columns })
    .map((cells) => `| ${cells.join(" | ")} |`);
  return fc.record({
    header: row.map((names) => `${names}\n|${" --- |".repeat(columns)}`),
    rows: fc.array(row, { minLength: 1, maxLength: 60 }),
  });
});
