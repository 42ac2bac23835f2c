-- The hierarchy: documents → pages → chunks through OCR, vector and GraphRAG.
-- Times are the database's own. Each phase has its own token, lease and retry count.

create type task_status as enum ('pending', 'processing', 'completed', 'failed');

-- A documents table of an older system is kept and gets the columns it lacks.
create table if not exists documents (
    id uuid primary key default gen_random_uuid(),
    filename varchar(500) not null
);

alter table documents
    add column if not exists tenant varchar(100) not null default 'default',
    add column if not exists collection varchar(100) not null default 'default',
    -- Where it came from; one current document per tenant, collection and source.
    add column if not exists source text not null default gen_random_uuid()::text,
    -- The bytes as they were handed in, below the data folder; in the document's own folder.
    add column if not exists original_path varchar(1000),
    add column if not exists content_hash varchar(64) not null default '',
    add column if not exists size_bytes bigint not null default 0,
    add column if not exists media_type varchar(200),
    add column if not exists title text,
    add column if not exists metadata jsonb not null default '{}',
    -- Headers and footers that repeat over the pages.
    add column if not exists furniture jsonb,
    -- Null until the document has been split into pages.
    add column if not exists total_pages integer,
    -- The newer version of the same source; this one goes away when that one can be searched.
    add column if not exists replaced_by uuid,

    add column if not exists ocr_status task_status not null default 'pending',
    add column if not exists vector_index_status task_status not null default 'pending',
    add column if not exists graphrag_index_status task_status not null default 'pending',
    add column if not exists ocr_started_at timestamp with time zone,
    add column if not exists ocr_completed_at timestamp with time zone,
    add column if not exists ocr_error text,
    add column if not exists vector_started_at timestamp with time zone,
    add column if not exists vector_completed_at timestamp with time zone,
    add column if not exists vector_error text,
    add column if not exists graphrag_started_at timestamp with time zone,
    add column if not exists graphrag_completed_at timestamp with time zone,
    add column if not exists graphrag_error text,

    -- Who splits the document into pages.
    add column if not exists current_worker_id varchar(100),
    add column if not exists last_heartbeat timestamp with time zone,
    add column if not exists ocr_lease_token bigint not null default 0,
    add column if not exists ocr_run_after timestamp with time zone,
    add column if not exists ocr_retry_count integer not null default 0,
    add column if not exists max_retries integer not null default 3,
    add column if not exists created_at timestamp with time zone not null default now(),
    add column if not exists updated_at timestamp with time zone not null default now();

create unique index documents_source on documents (tenant, collection, source) where replaced_by is null;
create index documents_created on documents (created_at, id);
create index documents_replaced on documents (replaced_by) where replaced_by is not null;

create table task_queue_page (
    id uuid primary key default gen_random_uuid(),
    document_id uuid not null references documents(id) on delete cascade,
    page_number integer not null,
    -- Below the data folder: Markdown without headers and footers (…_nohf.md), and what the page looks like.
    page_file_path varchar(1000),
    page_picture_path varchar(1000),
    -- "text": the file's own; "ocr": read from the picture.
    text_source varchar(10),
    ocr_confidence real,
    -- Headings of earlier pages that this page still stands under.
    headings jsonb,

    ocr_status task_status not null default 'pending',
    ocr_worker_id varchar(100),
    ocr_started_at timestamp with time zone,
    ocr_completed_at timestamp with time zone,
    ocr_error text,
    ocr_retry_count integer not null default 0,
    ocr_last_heartbeat timestamp with time zone,
    ocr_lease_token bigint not null default 0,
    ocr_run_after timestamp with time zone,

    vector_status task_status not null default 'pending',
    vector_worker_id varchar(100),
    vector_started_at timestamp with time zone,
    vector_completed_at timestamp with time zone,
    vector_error text,
    vector_retry_count integer not null default 0,
    vector_last_heartbeat timestamp with time zone,
    vector_lease_token bigint not null default 0,
    vector_run_after timestamp with time zone,

    graphrag_status task_status not null default 'pending',
    graphrag_worker_id varchar(100),
    graphrag_started_at timestamp with time zone,
    graphrag_completed_at timestamp with time zone,
    graphrag_error text,
    graphrag_retry_count integer not null default 0,
    graphrag_last_heartbeat timestamp with time zone,
    graphrag_lease_token bigint not null default 0,
    graphrag_run_after timestamp with time zone,

    -- Until then the vector phase of the page is its own; afterwards it follows from its chunks.
    is_chunked boolean not null default false,
    chunk_count integer not null default 0,
    max_retries integer not null default 3,
    created_at timestamp with time zone not null default now(),
    updated_at timestamp with time zone not null default now(),

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
    id uuid primary key default gen_random_uuid(),
    page_id uuid not null references task_queue_page(id) on delete cascade,
    document_id uuid not null references documents(id) on delete cascade,
    chunk_id varchar(64) not null,
    chunk_index integer not null,
    chunk_content_hash varchar(64),
    -- What is shown. What is embedded and indexed has the title, the headings and the overlap before it.
    content text not null default '',
    overlap text not null default '',
    heading_path jsonb not null default '[]',
    token_count integer not null default 0,
    start_offset integer not null default 0,
    end_offset integer not null default 0,

    vector_status task_status not null default 'pending',
    vector_worker_id varchar(100),
    vector_started_at timestamp with time zone,
    vector_completed_at timestamp with time zone,
    vector_error text,
    vector_retry_count integer not null default 0,
    vector_last_heartbeat timestamp with time zone,
    vector_lease_token bigint not null default 0,
    vector_run_after timestamp with time zone,

    graphrag_status task_status not null default 'pending',
    graphrag_worker_id varchar(100),
    graphrag_started_at timestamp with time zone,
    graphrag_completed_at timestamp with time zone,
    graphrag_error text,
    graphrag_retry_count integer not null default 0,
    graphrag_last_heartbeat timestamp with time zone,
    graphrag_lease_token bigint not null default 0,
    graphrag_run_after timestamp with time zone,

    entities_extracted integer not null default 0,
    relationships_extracted integer not null default 0,
    max_retries integer not null default 3,
    created_at timestamp with time zone not null default now(),
    updated_at timestamp with time zone not null default now(),

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
    cache_key varchar(64) primary key,
    step varchar(20) not null,
    document_id uuid references documents(id) on delete cascade,
    output bytea not null,
    created_at timestamp with time zone not null default now()
);
create index step_cache_document on step_cache (document_id, step);

-- What has to be taken out of the stores. The document's row is gone by then; each store says when it is done.
create table document_removals (
    id uuid primary key default gen_random_uuid(),
    document_id uuid not null,
    -- "document": all of it. "chunks": those listed, once the document is indexed anew. "replaced": when its
    -- successor can be searched.
    kind varchar(20) not null check (kind in ('document', 'chunks', 'replaced')),
    chunk_ids jsonb,
    chunk_keys jsonb,
    vectors_status task_status not null default 'pending',
    fulltext_status task_status not null default 'pending',
    graph_status task_status not null default 'pending',
    files_status task_status not null default 'pending',
    status task_status not null default 'pending',
    worker_id varchar(100),
    lease_token bigint not null default 0,
    lease_until timestamp with time zone,
    run_after timestamp with time zone,
    retry_count integer not null default 0,
    max_retries integer not null default 1000,
    error text,
    created_at timestamp with time zone not null default now(),
    started_at timestamp with time zone,
    completed_at timestamp with time zone
);
create index document_removals_document on document_removals (document_id);

-- A lane that is listed here rests, in every process.
create table paused_lanes (
    lane varchar(60) primary key,
    paused_at timestamp with time zone not null default now()
);

-- The data folder that belongs to this database: it says the same id.
create table data_folder (
    id varchar(36) primary key,
    created_at timestamp with time zone not null default now()
);

-- Processes that run lanes.
create table worker_processes (
    id varchar(100) primary key,
    host varchar(255) not null,
    pid integer not null,
    lanes jsonb not null,
    started_at timestamp with time zone not null default now(),
    last_heartbeat timestamp with time zone not null default now()
);
