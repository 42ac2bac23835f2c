import { literal } from "../database/dialect.ts";

/** What people call the rows of the catalogue, and where they are. */
const THINGS: readonly (readonly [words: RegExp, view: string, where?: string])[] = [
  [/^(documents?|files?|papers|records?)$/, "documents"],
  [/^pages?$/, "pages"],
  [/^(chunks?|passages?)$/, "chunks"],
  [/^(entities|entity|names|things)$/, "entities"],
  [/^(people|persons?|individuals)$/, "entities", "type = 'person'"],
  [/^(organi[sz]ations?|companies|firms)$/, "entities", "type = 'organization'"],
  [/^(places?|locations?)$/, "entities", "type = 'place'"],
  [/^products?$/, "entities", "type = 'product'"],
  [/^events?$/, "entities", "type = 'event'"],
  [/^(relations?|relationships?)$/, "relations"],
];
const THING_WORDS =
  "documents?|files?|papers|records?|pages?|chunks?|passages?|entity|entities|names|people|persons?|individuals|organi[sz]ations?|companies|firms|places?|locations?|products?|events?|relations?|relationships?";
const DOCUMENTS = "documents?|files?|papers";
const MENTION =
  "mentions?|names?|contains?|(?:speaks?|talks?|tells?|writes?) (?:of|about)|(?:is|are) about|refers? to|discuss(?:es)?|covers?|deals? with";
const THERE =
  "(?: are there| exist| do (?:we|you|i) have| have been ingested| were ingested| is there| are (?:in it|stored|indexed|available))?";
/** The end of a question: a collection, and nothing else. */
const IN_COLLECTION = String.raw`(?: in(?: the)?(?: collection)? ["'“”]?(?<collection>[\p{L}\p{N}_][\p{L}\p{N} _.:/@-]{0,99}?)["'“”]?(?: collection)?)?`;
const IN_TOTAL = "(?: in (?:total|all|the (?:index|catalogue|database|archive)))?";

type Groups = Readonly<Record<string, string | undefined>>;

/** Questions about what there is, and the query that answers each. The first that fits a whole question counts. */
const QUESTIONS: readonly (readonly [form: RegExp, sql: (found: Groups) => string | undefined])[] = [
  [
    form(`how many (?:${DOCUMENTS}) (?:${MENTION}) (?<about>.+)`),
    ({ about }) => `select count(distinct document_id) as documents from chunks where ${saysAll(about!)}`,
  ],
  [form(`(?:which|what) (?:${DOCUMENTS}) (?:${MENTION}) (?<about>.+)`), ({ about }) => mentioning(about!)],
  [
    form(
      `(?:list|show|find)(?: me)?(?: all)?(?: the)? (?:${DOCUMENTS}) (?:that |which )?(?:${MENTION}|mentioning|about) (?<about>.+)`,
    ),
    ({ about }) => mentioning(about!),
  ],
  [
    form(
      `(?:in )?(?:which|what) (?:${DOCUMENTS}) (?:is|are|do we find) (?<about>.+?) (?:mentioned|named|discussed|found)`,
    ),
    ({ about }) => mentioning(about!),
  ],
  [form("where (?:is|are) (?<about>.+?) (?:mentioned|named)"), ({ about }) => mentioning(about!)],
  [
    form(`(?:how many|what is the number of|count(?: the| all)?) collections${THERE}${IN_TOTAL}`),
    () => "select count(distinct collection) as collections from documents",
  ],
  [
    form(`(?:(?:which|what) collections${THERE}|(?:list|show)(?: me)?(?: all)?(?: the)? collections)`),
    () => "select collection, count(*) as documents from documents group by collection order by collection",
  ],
  [
    form(
      `(?:how many|what is the number of|count(?: the| all)?) (?<thing>${THING_WORDS})${THERE}(?: are| is)?${IN_TOTAL}${IN_COLLECTION}${THERE}`,
    ),
    ({ thing, collection }) => counted(thing!, collection),
  ],
  [
    form(`how many pages (?:has|does|are in|is) (?<about>.+?)(?: have)?`),
    ({ about }) =>
      `select filename, pages from documents where ${says("filename", about!)} or ${says("title", about!)} order by filename`,
  ],
  [
    form(
      `(?:(?:which|what) (?:${DOCUMENTS})${THERE}|(?:list|show)(?: me)?(?: all)?(?: the)? (?:${DOCUMENTS}))${IN_COLLECTION}${THERE}`,
    ),
    ({ collection }) =>
      `select filename, title, collection, pages from documents${within(collection)} order by filename`,
  ],
  [
    form(`(?:which|what)(?: is| are)?(?: the)? (?:longest|largest|biggest) (?:${DOCUMENTS})${THERE}`),
    () => "select filename, pages, size_bytes from documents order by pages desc, size_bytes desc limit 5",
  ],
  [
    form(
      `(?:which|what)(?: is| are| was| were)?(?: the)? (?:newest|latest|last|most recent) (?:${DOCUMENTS})${THERE}`,
    ),
    () => "select filename, created_at from documents order by created_at desc limit 5",
  ],
  [
    form(
      `(?:(?:who|which|what)(?: is| are)?|list|show)(?: me)?(?: the)? ?(?:(?<thing>${THING_WORDS})(?: is| are)? )?(?:most (?:often |frequently )?(?:mentioned|named|common|frequent)|top)(?: (?<named>${THING_WORDS}))?`,
    ),
    ({ thing, named }) => mostMentioned(named ?? thing ?? "entities"),
  ],
  [
    form(
      `(?:(?:which|what) (?<thing>people|persons|organi[sz]ations|companies|firms|places|locations|products|events|entities) (?:are|is) (?:mentioned|named|there)|(?:list|show)(?: me)?(?: all)?(?: the)? (?<named>people|persons|organi[sz]ations|companies|firms|places|locations|products|events|entities)(?: that are mentioned)?)`,
    ),
    ({ thing, named }) => mostMentioned((thing ?? named)!, 50),
  ],
];

function form(pattern: string): RegExp {
  return new RegExp(`^(?:please )?${pattern}$`, "iu");
}

/** The query that answers a question about what there is; undefined when it is about what the documents say. */
export function catalogueQuery(question: string): string | undefined {
  const asked = question
    .trim()
    .replace(/[?!.\s]+$/u, "")
    .replaceAll(/\s+/g, " ");
  for (const [pattern, sql] of QUESTIONS) {
    const found = pattern.exec(asked);
    const query = found && sql(found.groups ?? {});
    if (query) return query;
  }
  return undefined;
}

function counted(thing: string, collection: string | undefined): string | undefined {
  const [, view, where] = THINGS.find(([words]) => words.test(thing.toLowerCase())) ?? [];
  if (view === undefined) return undefined;
  const name = thing.toLowerCase().replaceAll(/[^a-z]/g, "");
  const hasCollection = ["documents", "entities", "relations"].includes(view);
  if (collection !== undefined && !hasCollection)
    return `select count(*) as ${name} from ${view} where document_id in (select id from documents${within(collection)})`;
  return `select count(*) as ${name} from ${view}${within(collection, where)}`;
}

function within(collection: string | undefined, ...others: (string | undefined)[]): string {
  const terms = [
    ...(collection === undefined ? [] : [`collection = ${literal(collection)}`]),
    ...others.filter((term) => term !== undefined),
  ];
  return terms.length === 0 ? "" : ` where ${terms.join(" and ")}`;
}

function mentioning(about: string): string {
  return `select filename, count(*) as passages, min(page_number) as first_page from chunks where ${saysAll(about)} group by filename order by passages desc, filename`;
}

function mostMentioned(thing: string, limit = 10): string | undefined {
  const [, view, where] = THINGS.find(([words]) => words.test(thing.toLowerCase())) ?? [];
  if (view !== "entities") return undefined;
  return `select name, type, mentions from entities${within(undefined, where)} order by mentions desc, name limit ${limit}`;
}

/** Passages that have the first of several things, of documents that have all of them. */
function saysAll(about: string): string {
  const [first, ...others] = about.split(/,? and |, /iu).map((words) => says("content", words));
  return [first, ...others.map((one) => `document_id in (select document_id from chunks where ${one})`)].join(
    " and ",
  );
}

/** Whether a column has these words in it; nothing in them is a pattern. */
function says(column: string, words: string): string {
  const bare = words.replaceAll(/^(?:the|a|an) |["“”]/giu, "").toLowerCase();
  return `lower(${column}) like ${literal(`%${bare.replaceAll(/[!%_]/g, "!$&")}%`)} escape '!'`;
}
