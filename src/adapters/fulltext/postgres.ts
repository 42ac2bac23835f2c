import type { Database, Row, Session } from "../../database/database.ts";
import type { TextEntry, TextIndex } from "../fulltext.ts";
import type { Hit, IndexFilter } from "../vectors.ts";
import { quoted, Stems, vectorText, wordsOf } from "./lexemes.ts";
import { scoreOf, type Term } from "./postgres-rank.ts";
import { COUNTED_MAX, type CountedTerm, MATCHES_MAX, partByMatches, rarityOf } from "./ranking.ts";
import { termsOf } from "./terms.ts";

const LOCK = 7310_0003;
const ENTRIES_PER_STATEMENT = 256;
/** So many tell how long a text is. */
const SAMPLE = 1_000;

/** Made by the index when it is opened, as the embedded one makes its own: nobody else needs them. */
const TABLES = [
  `create table if not exists chunk_words (
    id bigint generated always as identity,
    tenant text not null,
    document_id uuid not null,
    chunk_id text not null,
    collection text not null,
    length integer not null,
    words tsvector not null,
    primary key (tenant, document_id, chunk_id)
  )`,
  "create index if not exists chunk_words_document on chunk_words (document_id)",
  "create index if not exists chunk_words_scope on chunk_words (tenant, collection)",
  // What waits to be sorted in (in kB) is read from end to end by every search; without any, writing takes twice as long.
  "create index if not exists chunk_words_words on chunk_words using gin (words) with (gin_pending_list_limit = 256)",
];

/** The connection's own settings are made for queues: an index of words can only be read as a bitmap. */
const SEARCH_SETUP =
  "set local enable_bitmapscan = on; set local enable_sort = on; set local plan_cache_mode = force_custom_plan";

/** $1 tenants, $2 documents, $3 chunks, $4 collections, $5 lengths, $6 words. */
const UPSERT = {
  name: "fulltext.upsert",
  sql: "insert into chunk_words (tenant, document_id, chunk_id, collection, length, words) select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::integer[], $6::tsvector[]) on conflict (tenant, document_id, chunk_id) do update set collection = excluded.collection, length = excluded.length, words = excluded.words",
};
/** $1 document, $2 chunk ids or null. */
const REMOVE = {
  name: "fulltext.remove",
  sql: "delete from chunk_words where document_id = $1::uuid and ($2::text[] is null or chunk_id = any($2))",
};
/** Of every search: $1 tenant, $2 collection or null, $3 documents or null. */
const INSIDE =
  "tenant = $1 and ($2::text is null or collection = $2) and ($3::uuid[] is null or document_id = any($3))";
const atMost = (rows: string, limit = COUNTED_MAX) =>
  `(select count(*) from (select 1 from chunk_words where ${rows} limit ${limit}) as counted)`;
const SCOPE = {
  name: "fulltext.scope",
  sql: `select ${atMost(INSIDE)} as inside, ${atMost("true")} as texts, (select reltuples::bigint from pg_class where oid = 'chunk_words'::regclass) as estimate, (select avg(length)::float8 from (select length from chunk_words limit ${SAMPLE}) as sample) as length`,
};
/** $4 terms, $5 how many texts each stands in where that is known, $6 the scope's mark. */
const COUNT = {
  name: "fulltext.count",
  sql: `select ${atMost(`words @@ ($6::tsquery && asked.term) and ${INSIDE}`)} as matches, coalesce(asked.known, ${atMost("words @@ asked.term")}) as everywhere from unnest($4::tsquery[], $5::bigint[]) with ordinality as asked (term, known, position) order by position`,
};
/** $1 lexemes. In what share of the texts the most common ones stand, as of the last `analyze`. */
const SHARES = {
  name: "fulltext.shares",
  sql: "select common.lexeme, common.share from pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) as common (lexeme, share) where schemaname = current_schema() and tablename = 'chunk_words' and attname = 'words' and common.lexeme = any($1::text[])",
};

interface Scope {
  readonly params: readonly [tenant: string, collection: string | null, documents: readonly string[] | null];
  readonly mark: string;
  readonly isSmall: boolean;
  readonly allTexts: number;
  /** Of a text, in words. */
  readonly lengthMean: number;
}

/** Finds chunks by a tsvector, ranked as the embedded index ranks them (BM25). */
export async function openPostgresTexts(database: Database): Promise<TextIndex> {
  await database.transaction(async (session) => {
    await session.query(`select pg_advisory_xact_lock(${LOCK})`);
    const [known] = await session.query("select to_regclass('chunk_words_words') as found");
    if (known?.found === null) for (const statement of TABLES) await session.query(statement);
  });
  const stems = new Stems();
  return {
    async upsert(entries) {
      const newest = new Map<string, TextEntry>();
      for (const entry of entries)
        newest.set(JSON.stringify([entry.tenant, entry.documentId, entry.chunkId]), entry);
      // In one order, so that two writers of the same texts wait for each other instead of locking each other out.
      const rows = [...newest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
      for (let start = 0; start < rows.length; start += ENTRIES_PER_STATEMENT)
        await write(database, stems, rows.slice(start, start + ENTRIES_PER_STATEMENT));
    },
    async remove({ documentId, chunkIds }) {
      await database.query(REMOVE, [documentId, chunkIds ?? null]);
    },
    async search(query, { limit, filter }) {
      const asked = termsOf(query).map(wordsOf);
      await stems.learn(database, asked.flat());
      const terms = asked.filter((words) => words.length > 0).map((words) => termOf(words, stems));
      if (terms.length === 0) return [];
      return database.transaction(async (session) => {
        await session.query(SEARCH_SETUP);
        return search(session, terms, { limit, filter });
      });
    },
    async clear() {
      await database.query("truncate chunk_words");
    },
    async close() {},
  };
}

async function write(database: Database, stems: Stems, entries: readonly TextEntry[]): Promise<void> {
  const texts = entries.map(({ context, content }) => ({
    context: wordsOf(context),
    content: wordsOf(content),
  }));
  await stems.learn(
    database,
    texts.flatMap(({ context, content }) => [...context, ...content]),
  );
  const stemmed = (words: readonly string[]) => words.map((word) => stems.of(word));
  await database.query(UPSERT, [
    entries.map(({ tenant }) => tenant),
    entries.map(({ documentId }) => documentId),
    entries.map(({ chunkId }) => chunkId),
    entries.map(({ collection }) => collection),
    texts.map(({ context, content }) => context.length + content.length),
    entries.map(({ tenant, collection }, position) => {
      const { context, content } = texts[position]!;
      const marks = [markOf(tenant), markOf(tenant, collection)];
      return vectorText({ context: stemmed(context), content: stemmed(content), marks });
    }),
  ]);
}

async function search(
  session: Session,
  terms: readonly Term[],
  { limit, filter }: { limit: number; filter: IndexFilter },
): Promise<Hit[]> {
  const scope = await scopeOf(session, filter);
  if (!scope) return [];
  const counted = await countTerms(session, terms, scope);
  const present = counted.filter(({ matches }) => matches > 0);
  if (present.length === 0) return [];
  const expression = `${scope.mark} & (${await expressionOf(session, present, scope)})`;
  const params = [...scope.params, expression];
  const score = scoreOf(present, { lengthMean: scope.lengthMean, params });
  const rows = await session.query<FoundText>(
    `select chunk_id, document_id, ${score} as score from chunk_words where words @@ $4::tsquery and ${INSIDE} order by score desc, id limit ${limit}`,
    params,
  );
  const best = counted.reduce((sum, { rarity }) => sum + rarity, 0);
  return rows.map((row) => ({
    chunkId: row.chunk_id,
    documentId: row.document_id,
    score: Math.min(1, row.score / best),
  }));
}

/** Undefined when there is nothing in it. */
async function scopeOf(session: Session, filter: IndexFilter): Promise<Scope | undefined> {
  const { tenant, collection, documentIds } = filter;
  const params = [tenant, collection ?? null, documentIds ?? null] as const;
  const [row] = await session.query<ScopeRow>(SCOPE, params);
  const { inside, texts, estimate, length } = row!;
  if (inside === 0) return undefined;
  return {
    params,
    mark: quoted(markOf(tenant, collection)),
    isSmall: inside <= MATCHES_MAX,
    // Counting them all would take longer than the search.
    allTexts: Math.max(texts, estimate),
    lengthMean: Math.max(1, length),
  };
}

async function countTerms(
  session: Session,
  terms: readonly Term[],
  { params, mark, allTexts }: Scope,
): Promise<(Term & CountedTerm)[]> {
  const known = await commonTexts(session, terms, allTexts);
  const asked = terms.map(({ term }) => term);
  const rows = await session.query<Counts>(COUNT, [...params, asked, known, mark]);
  return rows.map(({ matches, everywhere }, position) => ({
    ...terms[position]!,
    matches,
    rarity: rarityOf(everywhere, allTexts),
  }));
}

/** In how many texts those terms stand that are too common to be counted; null for the others. */
async function commonTexts(
  session: Session,
  terms: readonly Term[],
  allTexts: number,
): Promise<(number | null)[]> {
  if (allTexts <= COUNTED_MAX) return terms.map(() => null);
  const rows = await session.query<{ lexeme: string; share: number }>(SHARES, [
    terms.flatMap(({ lexemes }) => lexemes),
  ]);
  const shares = new Map(rows.map(({ lexeme, share }) => [lexeme, share]));
  return terms.map(({ lexemes }) => {
    const texts = lexemes.length === 1 ? Math.round((shares.get(lexemes[0]!) ?? 0) * allTexts) : 0;
    return texts > COUNTED_MAX ? texts : null;
  });
}

/** As the embedded index does it: what is common finds only where all of it stands together. */
async function expressionOf(
  session: Session,
  counted: readonly CountedTerm[],
  scope: Scope,
): Promise<string> {
  if (scope.isSmall) return counted.map(({ term }) => term).join(" | ");
  const { rare, common } = partByMatches(counted);
  const any = rare.join(" | ");
  if (common.length === 0) return any;
  const together = common.join(" & ");
  const [row] = await session.query<Counts>(COUNT, [...scope.params, [together], [0], scope.mark]);
  return row!.matches <= MATCHES_MAX ? `${any} | (${together})` : any;
}

type ScopeRow = Row & { inside: number; texts: number; estimate: number; length: number };
type Counts = Row & { matches: number; everywhere: number };
type FoundText = Row & { chunk_id: string; document_id: string; score: number };

function termOf(words: readonly string[], stems: Stems): Term {
  const lexemes = words.map((word) => stems.of(word));
  return {
    lexemes,
    term: lexemes.length === 1 ? quoted(lexemes[0]!) : `(${lexemes.map(quoted).join(" <-> ")})`,
  };
}

/** What a tenant or collection holds is found by a lexeme, so that the index walks over no other's texts. */
function markOf(tenant: string, collection?: string): string {
  return collection === undefined ? `/${tenant}` : `/${tenant}/${collection}`;
}
