import type { Dialect } from "../database/dialect.ts";
import { literal } from "../database/dialect.ts";

/** What a question may be about: one tenant's documents, or one collection of them. */
export interface Scope {
  readonly tenant: string;
  readonly collection: string | null;
}

interface View {
  readonly name: string;
  /** For people and models that write a query. */
  readonly about: string;
  readonly columns: Readonly<Record<string, string>>;
  /** `t` is where a table is: "main". */
  readonly from: (t: string) => string;
  /** The table that knows whose the rows are. */
  readonly owner: string;
  readonly where?: string;
}

const text = (column: string) => `cast(${column} as text)`;

/** All that a query over the catalogue can see. */
export const VIEWS: readonly View[] = [
  {
    name: "documents",
    about: "one row for each document",
    columns: {
      id: text("d.id"),
      filename: "d.filename",
      title: "d.title",
      collection: "d.collection",
      media_type: "d.media_type",
      size_bytes: "d.size_bytes",
      pages: "d.total_pages",
      created_at: "d.created_at",
    },
    from: (t) => `${t}.documents as d`,
    owner: "d",
    where: "d.replaced_by is null",
  },
  {
    name: "pages",
    about: "one row for each page; text_source is 'text' or 'ocr'",
    columns: {
      document_id: text("p.document_id"),
      filename: "d.filename",
      page_number: "p.page_number",
      text_source: "p.text_source",
      chunks: "p.chunk_count",
    },
    from: (t) => `${t}.task_queue_page as p join ${t}.documents as d on d.id = p.document_id`,
    owner: "d",
    where: "d.replaced_by is null",
  },
  {
    name: "chunks",
    about: "one row for each passage of text",
    columns: {
      id: text("c.id"),
      document_id: text("c.document_id"),
      filename: "d.filename",
      page_number: "p.page_number",
      chunk_index: "c.chunk_index",
      content: "c.content",
      tokens: "c.token_count",
    },
    from: (t) =>
      `${t}.task_queue_chunk as c join ${t}.task_queue_page as p on p.id = c.page_id join ${t}.documents as d on d.id = c.document_id`,
    owner: "d",
    where: "d.replaced_by is null",
  },
  {
    name: "entities",
    about:
      "one row for each thing that is named; type is person, organization, place, product, event or concept; mentions is how often",
    columns: {
      id: text("e.id"),
      name: "e.name",
      type: "e.type",
      collection: "e.collection",
      mentions: "e.mention_count",
    },
    from: (t) => `${t}.entities as e`,
    owner: "e",
  },
  {
    name: "mentions",
    about: "where each entity is named: one row for each place",
    columns: {
      entity: "e.name",
      type: "e.type",
      document_id: text("g.document_id"),
      filename: "d.filename",
      page_number: "p.page_number",
    },
    from: (t) =>
      `${t}.entity_mentions as m join ${t}.entities as e on e.id = m.entity_id join ${t}.graph_chunks as g on g.chunk_key = m.chunk_key join ${t}.task_queue_chunk as c on c.id = g.chunk_key join ${t}.task_queue_page as p on p.id = c.page_id join ${t}.documents as d on d.id = g.document_id`,
    owner: "e",
  },
  {
    name: "relations",
    about: "what one entity has to do with another",
    columns: {
      source: "s.name",
      type: "r.type",
      target: "o.name",
      collection: "r.collection",
      mentions: "r.mention_count",
    },
    from: (t) =>
      `${t}.relations as r join ${t}.entities as s on s.id = r.source_id join ${t}.entities as o on o.id = r.target_id`,
    owner: "r",
  },
];

export const VIEW_NAMES: ReadonlySet<string> = new Set(VIEWS.map(({ name }) => name));

/** Tables that the views read. */
export const BASE_TABLES: ReadonlySet<string> = new Set([
  ...["documents", "task_queue_page", "task_queue_chunk"],
  ...["entities", "entity_mentions", "relations", "graph_chunks"],
]);

/**
 * Makes the views for one connection. Whose rows they show is part of them, so that no query can ask for another's.
 * On PostgreSQL they are barriers: a condition of the query is never tried on rows that it may not see.
 */
export function viewsSql(dialect: Dialect["name"], schema: string, scope: Scope): string[] {
  const barrier = dialect === "postgres" ? " with (security_barrier)" : "";
  return VIEWS.map(({ name, columns, from, owner, where }) => {
    const selected = Object.entries(columns).map(([column, sql]) => `${sql} as ${column}`);
    const terms = [
      `${owner}.tenant = ${literal(scope.tenant)}`,
      ...(scope.collection === null ? [] : [`${owner}.collection = ${literal(scope.collection)}`]),
      ...(where === undefined ? [] : [where]),
    ];
    return `create temp view ${name}${barrier} as select ${selected.join(", ")} from ${from(schema)} where ${terms.join(" and ")}`;
  });
}

/** As a model is told about them. */
export function catalogueText(): string {
  return VIEWS.map(
    ({ name, about, columns }) => `${name}(${Object.keys(columns).join(", ")}): ${about}`,
  ).join("\n");
}
