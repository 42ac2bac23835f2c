-- The hierarchy: documents → pages → chunks through OCR, vector and GraphRAG.
-- Times are ISO 8601 in UTC. Each phase has its own token, lease and retry count.

create table documents (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    filename text not null,
    tenant text not null default 'default',
    collection text not null default 'default',
    -- Where it came from; one current document per tenant, collection and source.
    source text not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    -- The bytes as they were handed in, below the data folder; in the document's own folder.
    original_path text,
    content_hash text not null default '',
    size_bytes integer not null default 0,
    media_type text,
    title text,
    metadata text not null default '{}',
    -- Headers and footers that repeat over the pages.
    furniture text,
    -- Null until the document has been split into pages.
    total_pages integer,
    -- The newer version of the same source; this one goes away when that one can be searched.
    replaced_by text,

    ocr_status text not null default 'pending' check (ocr_status in ('pending', 'processing', 'completed', 'failed')),
    vector_index_status text not null default 'pending' check (vector_index_status in ('pending', 'processing', 'completed', 'failed')),
    graphrag_index_status text not null default 'pending' check (graphrag_index_status in ('pending', 'processing', 'completed', 'failed')),
    ocr_started_at text,
    ocr_completed_at text,
    ocr_error text,
    vector_started_at text,
    vector_completed_at text,
    vector_error text,
    graphrag_started_at text,
    graphrag_completed_at text,
    graphrag_error text,

    -- Who splits the document into pages.
    current_worker_id text,
    last_heartbeat text,
    ocr_lease_token integer not null default 0,
    ocr_run_after text,
    ocr_retry_count integer not null default 0,
    max_retries integer not null default 3,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

create unique index documents_source on documents (tenant, collection, source) where replaced_by is null;
create index documents_created on documents (created_at, id);
create index documents_replaced on documents (replaced_by) where replaced_by is not null;

create table task_queue_page (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    document_id text not null references documents(id) on delete cascade,
    page_number integer not null,
    -- Below the data folder: Markdown without headers and footers (…_nohf.md), and what the page looks like.
    page_file_path text,
    page_picture_path text,
    -- "text": the file's own; "ocr": read from the picture.
    text_source text,
    ocr_confidence real,
    -- Headings of earlier pages that this page still stands under.
    headings text,

    ocr_status text not null default 'pending' check (ocr_status in ('pending', 'processing', 'completed', 'failed')),
    ocr_worker_id text,
    ocr_started_at text,
    ocr_completed_at text,
    ocr_error text,
    ocr_retry_count integer not null default 0,
    ocr_last_heartbeat text,
    ocr_lease_token integer not null default 0,
    ocr_run_after text,

    vector_status text not null default 'pending' check (vector_status in ('pending', 'processing', 'completed', 'failed')),
    vector_worker_id text,
    vector_started_at text,
    vector_completed_at text,
    vector_error text,
    vector_retry_count integer not null default 0,
    vector_last_heartbeat text,
    vector_lease_token integer not null default 0,
    vector_run_after text,

    graphrag_status text not null default 'pending' check (graphrag_status in ('pending', 'processing', 'completed', 'failed')),
    graphrag_worker_id text,
    graphrag_started_at text,
    graphrag_completed_at text,
    graphrag_error text,
    graphrag_retry_count integer not null default 0,
    graphrag_last_heartbeat text,
    graphrag_lease_token integer not null default 0,
    graphrag_run_after text,

    -- Until then the vector phase of the page is its own; afterwards it follows from its chunks.
    is_chunked boolean not null default false,
    chunk_count integer not null default 0,
    max_retries integer not null default 3,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),

    unique (document_id, page_number),
    constraint vector_after_ocr check (vector_status = 'pending' or ocr_status = 'completed'),
    constraint graphrag_after_ocr check (graphrag_status = 'pending' or ocr_status = 'completed'),
    constraint chunked_after_ocr check (not is_chunked or ocr_status = 'completed')
);

create index idx_tqp_ocr_status on task_queue_page(ocr_status) where ocr_status in ('pending', 'failed');
create index idx_tqp_vector_status on task_queue_page(vector_status) where vector_status in ('pending', 'failed');
create index idx_tqp_graphrag_status on task_queue_page(graphrag_status) where graphrag_status in ('pending', 'failed');
create index idx_tqp_document on task_queue_page(document_id);
create index idx_tqp_ocr_heartbeat on task_queue_page(ocr_last_heartbeat) where ocr_status = 'processing';
create index idx_tqp_vector_heartbeat on task_queue_page(vector_last_heartbeat) where vector_status = 'processing';
create index idx_tqp_graphrag_heartbeat on task_queue_page(graphrag_last_heartbeat) where graphrag_status = 'processing';

create table task_queue_chunk (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    page_id text not null references task_queue_page(id) on delete cascade,
    document_id text not null references documents(id) on delete cascade,
    chunk_id text not null,
    chunk_index integer not null,
    chunk_content_hash text,
    -- What is shown. What is embedded and indexed has the title, the headings and the overlap before it.
    content text not null default '',
    overlap text not null default '',
    heading_path text not null default '[]',
    token_count integer not null default 0,
    start_offset integer not null default 0,
    end_offset integer not null default 0,

    vector_status text not null default 'pending' check (vector_status in ('pending', 'processing', 'completed', 'failed')),
    vector_worker_id text,
    vector_started_at text,
    vector_completed_at text,
    vector_error text,
    vector_retry_count integer not null default 0,
    vector_last_heartbeat text,
    vector_lease_token integer not null default 0,
    vector_run_after text,

    graphrag_status text not null default 'pending' check (graphrag_status in ('pending', 'processing', 'completed', 'failed')),
    graphrag_worker_id text,
    graphrag_started_at text,
    graphrag_completed_at text,
    graphrag_error text,
    graphrag_retry_count integer not null default 0,
    graphrag_last_heartbeat text,
    graphrag_lease_token integer not null default 0,
    graphrag_run_after text,

    entities_extracted integer not null default 0,
    relationships_extracted integer not null default 0,
    max_retries integer not null default 3,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),

    unique (page_id, chunk_index),
    constraint graphrag_after_vector check (graphrag_status = 'pending' or vector_status = 'completed')
);

create index idx_tqc_vector_status on task_queue_chunk(vector_status) where vector_status in ('pending', 'failed');
create index idx_tqc_graphrag_status on task_queue_chunk(graphrag_status) where graphrag_status in ('pending', 'failed');
create index idx_tqc_page on task_queue_chunk(page_id);
create index idx_tqc_document on task_queue_chunk(document_id);
create index idx_tqc_vector_heartbeat on task_queue_chunk(vector_last_heartbeat) where vector_status = 'processing';
create index idx_tqc_graphrag_heartbeat on task_queue_chunk(graphrag_last_heartbeat) where graphrag_status = 'processing';
create index idx_tqc_chunk on task_queue_chunk(document_id, chunk_id);

-- What OCR, embedding and extraction gave for an input, so that nothing is done twice. Goes with its document.
create table step_cache (
    cache_key text primary key,
    step text not null,
    document_id text references documents(id) on delete cascade,
    output blob not null,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);
create index step_cache_document on step_cache (document_id, step);

-- What has to be taken out of the stores. The document's row is gone by then; each store says when it is done.
create table document_removals (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    document_id text not null,
    -- "document": all of it. "chunks": those listed, once the document is indexed anew. "replaced": when its
    -- successor can be searched.
    kind text not null check (kind in ('document', 'chunks', 'replaced')),
    chunk_ids text,
    chunk_keys text,
    vectors_status text not null default 'pending' check (vectors_status in ('pending', 'processing', 'completed', 'failed')),
    fulltext_status text not null default 'pending' check (fulltext_status in ('pending', 'processing', 'completed', 'failed')),
    graph_status text not null default 'pending' check (graph_status in ('pending', 'processing', 'completed', 'failed')),
    files_status text not null default 'pending' check (files_status in ('pending', 'processing', 'completed', 'failed')),
    status text not null default 'pending' check (status in ('pending', 'processing', 'completed', 'failed')),
    worker_id text,
    lease_token integer not null default 0,
    lease_until text,
    run_after text,
    retry_count integer not null default 0,
    max_retries integer not null default 1000,
    error text,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    started_at text,
    completed_at text
);
create index document_removals_document on document_removals (document_id);

-- A lane that is listed here rests, in every process.
create table paused_lanes (
    lane text primary key,
    paused_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

-- The data folder that belongs to this database: it says the same id.
create table data_folder (
    id text primary key,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

-- Processes that run lanes.
create table worker_processes (
    id text primary key,
    host text not null,
    pid integer not null,
    lanes text not null,
    started_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    last_heartbeat text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);
