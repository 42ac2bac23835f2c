-- Jobs of the RAG contract. The queue itself where no Redis is configured; else what is known of the jobs in Redis,
-- from which they are queued again should Redis lose them.

create table rag_jobs (
    job_id text primary key,
    rag_id text not null,
    source_path text not null,
    source_type text not null,
    filename text not null,
    -- As the producer wrote it.
    submitted_at text not null,
    submitted_by text not null default 'cli',
    priority text not null default 'normal' check (priority in ('high', 'normal', 'low')),
    -- The JSON as it was pushed, with fields that the contract does not know.
    message text not null,
    status text not null default 'queued' check (status in ('submitted', 'queued', 'processing', 'done', 'failed')),
    retry_count integer not null default 0,
    max_retries integer not null default 3,
    started_at timestamptz,
    chunks_created bigint not null default 0,
    embeddings_generated bigint not null default 0,
    tokens_used bigint not null default 0,
    error text,
    error_type text,
    error_code text,
    -- A JSON array.
    suggestions text,
    traceback text,

    -- In which list it stands: of a priority, of a RAG, or (empty) the plain one.
    list text not null default '',
    -- Its place in line: lists take turns.
    turn bigint not null default 0,
    -- At least one more than retry_count when it came: every job is run once.
    attempts_max integer not null default 3,
    lease_token bigint not null default 0,
    lease_until timestamptz,
    run_after timestamptz,
    worker_id text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    finished_at timestamptz,
    last_error_at timestamptz,
    -- What the worker must know when it comes to the job a second time.
    document_id text,
    cleared_at timestamptz,
    moved_from text,
    moved_to text,
    move_state text,

    completed_at timestamptz generated always as (case when status = 'done' then finished_at end) stored,
    failed_at timestamptz generated always as (case when status = 'failed' then finished_at end) stored,
    duration_seconds integer generated always as (
        round(extract(epoch from finished_at - started_at))::integer
    ) stored
);

create index rag_jobs_created on rag_jobs(created_at);
create index rag_jobs_open on rag_jobs(created_at, job_id) where status in ('submitted', 'queued', 'processing');
create index rag_jobs_dead on rag_jobs(finished_at, job_id) where status = 'failed';
create index rag_jobs_served on rag_jobs(turn) where status in ('processing', 'done', 'failed') and turn > 0;
create index rag_jobs_waiting on rag_jobs(list, turn) where status = 'queued';
create index rag_jobs_updated on rag_jobs(updated_at);

-- By this name a Redis remembers that every open job of this database was told to it.
create table rag_ledger (id text primary key);
insert into rag_ledger (id) values (gen_random_uuid()::text);
