import type { Database, Session, Statement, Transaction } from "../../database/database.ts";
import type { TextEntry, TextIndex } from "../fulltext.ts";
import type { Hit, IndexFilter } from "../vectors.ts";
import {
  CONTENT_WEIGHT,
  CONTEXT_WEIGHT,
  COUNTED_MAX,
  type CountedTerm,
  MATCHES_MAX,
  partByMatches,
  rarityOf,
  SATURATION,
} from "./ranking.ts";
import { allOf, anyOf, TOKENIZER, termsOf, withBorders } from "./terms.ts";

/**
 * The words' own table keeps no text, only where words stand. Its row ids carry the tenant's number in front, so
 * that a search walks over its own tenant's rows and no others.
 */
export const TEXT_TABLES = [
  "create table text_tenants (number integer primary key, tenant text not null unique, texts integer not null default 0);",
  `create table texts (
    id integer primary key,
    tenant text not null,
    chunk_id text not null,
    document_id text not null,
    collection text not null,
    unique (tenant, document_id, chunk_id)
  );`,
  "create index texts_document on texts (document_id, tenant, collection);",
  "create index texts_scope on texts (tenant, collection);",
  `create virtual table words using fts5(context, content, content = '', contentless_delete = 1, tokenize = '${TOKENIZER}');`,
];

/** Row ids stay below 2^53: two million tenants, four thousand million chunks each. */
const ROWS_PER_TENANT = 2 ** 32;

const ADD_TENANT = {
  name: "index.add_tenant",
  sql: "insert into text_tenants (tenant) values (?1) on conflict (tenant) do nothing",
};
const TENANT = { name: "index.tenant", sql: "select number from text_tenants where tenant = ?1" };
const TENANT_SIZE = {
  name: "index.tenant_size",
  sql: "select number, texts, (select sum(texts) from text_tenants) as all_texts from text_tenants where tenant = ?1",
};
/** ?1 tenant's number, ?2 by how much. */
const COUNT_TENANT = {
  name: "index.count_tenant",
  sql: "update text_tenants set texts = texts + ?2 where number = ?1",
};
const FIND = {
  name: "index.text",
  sql: "select id from texts where tenant = ?1 and document_id = ?2 and chunk_id = ?3",
};
/** ?1 first and ?2 last row id of the tenant. */
const LAST_ID = {
  name: "index.last_text",
  sql: "select max(id) as id from texts where id between ?1 and ?2",
};
const WRITE_TEXT = {
  name: "index.write_text",
  sql: "insert or replace into texts (id, tenant, chunk_id, document_id, collection) values (?1, ?2, ?3, ?4, ?5)",
};
const WRITE_WORDS = {
  name: "index.write_words",
  sql: "insert or replace into words (rowid, context, content) values (?1, ?2, ?3)",
};
/** ?1 document, ?2 chunk ids or null. */
const REMOVE = {
  name: "index.remove_texts",
  sql: "delete from texts where document_id = ?1 and (?2 is null or chunk_id in (select value from json_each(?2))) returning id",
};
const REMOVE_WORDS = {
  name: "index.remove_words",
  sql: "delete from words where rowid in (select value from json_each(?1))",
};

/**
 * Statements for one shape of filter, so that each finds its index. Those on words take ?1 words, ?2 first and ?3
 * last row id of the tenant, ?4 limit; the filter's own parameters follow.
 */
function compile({ hasCollection, hasDocuments }: { hasCollection: boolean; hasDocuments: boolean }) {
  const terms = [
    ...(hasCollection ? ["t.collection = ?5"] : []),
    ...(hasDocuments ? [`t.document_id in (select value from json_each(?${hasCollection ? 6 : 5}))`] : []),
  ];
  const isInside = terms.map((term) => ` and ${term}`).join("");
  const filtered = terms.length > 0 ? " cross join texts as t on t.id = words.rowid" : "";
  const matches = `from words${filtered} where words match ?1 and words.rowid between ?2 and ?3${isInside}`;
  const best = `select words.rowid as id, -bm25(words, ${CONTEXT_WEIGHT}, ${CONTENT_WEIGHT}) as score ${matches} order by score desc, id limit ?4`;
  const shape =
    [hasCollection && "collection", hasDocuments && "documents"].filter(Boolean).join("_") || "all";
  return {
    /** ?1 tenant, ?4 limit, and the filter. */
    countTexts: {
      name: `index.count_texts_${shape}`,
      sql: `select count(*) as total from (select 1 from texts as t where t.tenant = ?1${isInside} limit ?4)`,
    },
    countMatches: {
      name: `index.count_matches_${shape}`,
      sql: `select count(*) as total from (select 1 ${matches} limit ?4)`,
    },
    search: {
      name: `index.search_words_${shape}`,
      sql: `select t.chunk_id, t.document_id, best.score from (${best}) as best cross join texts as t on t.id = best.id order by best.score desc, t.id`,
    },
  };
}

const SHAPES = [false, true].map((hasCollection) =>
  [false, true].map((hasDocuments) => compile({ hasCollection, hasDocuments })),
);

const EVERYWHERE = SHAPES[0]![0]!;

interface Scope {
  readonly statements: ReturnType<typeof compile>;
  readonly rows: RowRange;
  readonly filter: readonly unknown[];
  /** How many texts there are, not only in this scope. */
  readonly allTexts: number;
  /** Nothing is in the index but what this scope holds. */
  readonly isAll: boolean;
  /** Everything is found and ranked without a thought to the cost. */
  readonly isSmall: boolean;
}

export function openEmbeddedTexts(database: Database): TextIndex {
  /** Undefined when the tenant has nothing here. */
  async function scopeOf({ tenant, collection, documentIds }: IndexFilter): Promise<Scope | undefined> {
    const [size] = await database.query<TenantSize>(TENANT_SIZE, [tenant]);
    if (!size || size.texts === 0) return undefined;
    const statements = SHAPES[collection === undefined ? 0 : 1]![documentIds ? 1 : 0]!;
    const filter = [
      ...(collection === undefined ? [] : [collection]),
      ...(documentIds ? [JSON.stringify(documentIds)] : []),
    ];
    const inside = await total(statements.countTexts, [tenant, null, null, COUNTED_MAX, ...filter]);
    return {
      statements,
      filter,
      rows: rowRange(size.number),
      allTexts: size.all_texts,
      isAll: filter.length === 0 && size.texts === size.all_texts,
      isSmall: inside <= MATCHES_MAX,
    };
  }

  async function total(statement: Statement, params: readonly unknown[]): Promise<number> {
    const [row] = await database.query<{ total: number }>(statement, params);
    return row!.total;
  }

  function count(expression: string, { statements, rows, filter }: Scope): Promise<number> {
    return total(statements.countMatches, [expression, ...rows, COUNTED_MAX, ...filter]);
  }

  async function countTerm(term: string, scope: Scope): Promise<CountedTerm> {
    const expression = anyOf([term]);
    const matches = await count(expression, scope);
    const everywhere = scope.isAll
      ? matches
      : await total(EVERYWHERE.countMatches, [expression, ...ALL_ROWS, COUNTED_MAX]);
    return { term, matches, rarity: rarityOf(everywhere, scope.allTexts) };
  }

  /**
   * Terms from the rarest on, as long as they do not match too much; the others find only where they stand all
   * together. So a word that stands everywhere costs nothing, in whatever language.
   */
  async function expressionOf(counted: readonly CountedTerm[], scope: Scope): Promise<string> {
    const { rare, common } = scope.isSmall
      ? { rare: counted.map(({ term }) => term), common: [] }
      : partByMatches(counted);
    if (common.length === 0) return anyOf(rare);
    const together = allOf(common);
    const isBearable = (await count(together, scope)) <= MATCHES_MAX;
    return isBearable ? `${anyOf(rare)} OR (${together})` : anyOf(rare);
  }

  return {
    async upsert(entries) {
      if (entries.length === 0) return;
      await database.transaction(async (transaction) => {
        for (const entry of entries) await writeEntry(transaction, entry);
      });
    },
    async remove({ documentId, chunkIds }) {
      await database.transaction(async (transaction) => {
        const params = [documentId, chunkIds ? JSON.stringify(chunkIds) : null];
        const ids = (await transaction.query<{ id: number }>(REMOVE, params)).map((row) => row.id);
        await transaction.query(REMOVE_WORDS, [JSON.stringify(ids)]);
        for (const [tenant, some] of Map.groupBy(ids, (id) => Math.floor(id / ROWS_PER_TENANT)))
          await transaction.query(COUNT_TENANT, [tenant, -some.length]);
      });
    },
    async search(query, { limit, filter }) {
      const scope = await scopeOf(filter);
      if (!scope) return [];
      const counted: CountedTerm[] = [];
      for (const term of termsOf(query)) counted.push(await countTerm(term, scope));
      const present = counted.filter(({ matches }) => matches > 0);
      if (present.length === 0) return [];
      const params = [await expressionOf(present, scope), ...scope.rows, limit, ...scope.filter];
      const rows = await database.query<FoundText>(scope.statements.search, params);
      const best = counted.reduce((sum, { rarity }) => sum + rarity * SATURATION, 0);
      return rows.map((row) => hitOf(row, best));
    },
    clear: () => database.transaction(clearTexts),
    async close() {},
  };
}

export async function clearTexts(session: Session): Promise<void> {
  await session.query("insert into words (words) values ('delete-all')");
  for (const table of ["texts", "text_tenants"]) await session.query(`delete from ${table}`);
}

type TenantSize = { number: number; texts: number; all_texts: number };
type FoundText = { chunk_id: string; document_id: string; score: number };

function hitOf(row: FoundText, best: number): Hit {
  return { chunkId: row.chunk_id, documentId: row.document_id, score: Math.min(1, row.score / best) };
}

type RowRange = readonly [first: number, last: number];

const ALL_ROWS: RowRange = [0, Number.MAX_SAFE_INTEGER];

function rowRange(tenantNumber: number): RowRange {
  return [tenantNumber * ROWS_PER_TENANT, (tenantNumber + 1) * ROWS_PER_TENANT - 1];
}

async function writeEntry(transaction: Transaction, entry: TextEntry): Promise<void> {
  const { tenant, chunkId, documentId, collection } = entry;
  const [known] = await transaction.query<{ id: number }>(FIND, [tenant, documentId, chunkId]);
  const id = known?.id ?? (await nextId(transaction, tenant));
  await transaction.query(WRITE_TEXT, [id, tenant, chunkId, documentId, collection]);
  await transaction.query(WRITE_WORDS, [id, withBorders(entry.context), withBorders(entry.content)]);
}

async function nextId(transaction: Transaction, tenant: string): Promise<number> {
  await transaction.query(ADD_TENANT, [tenant]);
  const [row] = await transaction.query<{ number: number }>(TENANT, [tenant]);
  await transaction.query(COUNT_TENANT, [row!.number, 1]);
  const [first, last] = rowRange(row!.number);
  const [newest] = await transaction.query<{ id: number | null }>(LAST_ID, [first, last]);
  return (newest?.id ?? first) + 1;
}
