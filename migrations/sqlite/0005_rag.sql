-- Jobs of the RAG contract. The queue itself where no Redis is configured; else what is known of the jobs in Redis,
-- from which they are queued again should Redis lose them. Times are ISO 8601 in UTC.

create table rag_jobs (
    job_id text primary key not null,
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
    started_at text,
    chunks_created integer not null default 0,
    embeddings_generated integer not null default 0,
    tokens_used integer not null default 0,
    error text,
    error_type text,
    error_code text,
    -- A JSON array.
    suggestions text,
    traceback text,

    -- In which list it stands: of a priority, of a RAG, or (empty) the plain one.
    list text not null default '',
    -- Its place in line: lists take turns.
    turn integer not null default 0,
    -- At least one more than retry_count when it came: every job is run once.
    attempts_max integer not null default 3,
    lease_token integer not null default 0,
    lease_until text,
    run_after text,
    worker_id text,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    finished_at text,
    last_error_at text,
    -- What the worker must know when it comes to the job a second time.
    document_id text,
    cleared_at text,
    moved_from text,
    moved_to text,
    move_state text,

    completed_at text generated always as (case when status = 'done' then finished_at end) virtual,
    failed_at text generated always as (case when status = 'failed' then finished_at end) virtual,
    duration_seconds integer generated always as (
        cast(round((julianday(finished_at) - julianday(started_at)) * 86400) as integer)
    ) virtual
);

create index rag_jobs_created on rag_jobs(created_at);
create index rag_jobs_open on rag_jobs(created_at, job_id) where status in ('submitted', 'queued', 'processing');
create index rag_jobs_dead on rag_jobs(finished_at, job_id) where status = 'failed';
create index rag_jobs_served on rag_jobs(turn) where status in ('processing', 'done', 'failed') and turn > 0;
create index rag_jobs_waiting on rag_jobs(list, turn) where status = 'queued';
create index rag_jobs_updated on rag_jobs(updated_at);

-- By this name a Redis remembers that every open job of this database was told to it.
create table rag_ledger (id text primary key not null);
insert into rag_ledger (id) values (lower(hex(randomblob(16))));
