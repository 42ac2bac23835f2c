-- Embedding jobs: a text and the vector it becomes. A rule makes its own job when it is written or changed.
-- Vectors are blobs of 32-bit floats, least significant byte first.

create table if not exists projects (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    name text not null,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

create table rules (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    rule_id text not null,
    title text not null,
    guidance text not null,
    rationale text,
    priority text not null default 'medium',
    project_id text references projects(id) on delete cascade,
    -- Which model made the vector, and of which text: the rule may have changed since.
    embedding blob,
    embedding_model text,
    embedding_text_hash text,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

-- The model of jobs that a rule makes, as the settings of the running system say.
create table embedding_defaults (
    is_only integer primary key default 1 check (is_only = 1),
    embedding_model text not null
);

create table embedding_jobs (
    id text primary key not null default (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    -- Null: a text that belongs to no rule.
    rule_id text references rules(id) on delete cascade,

    status text not null default 'pending' check (status in ('pending', 'processing', 'completed', 'failed', 'retrying')),
    priority text not null default 'normal' check (priority in ('low', 'normal', 'high', 'urgent')),
    embedding_model text not null default 'nomic-embed-text',

    input_text text not null,
    text_hash text not null,

    attempts integer not null default 0,
    max_attempts integer not null default 3,

    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    started_at text,
    completed_at text,

    embedding_vector blob,
    embedding_dimensions integer,
    error_message text,
    processing_time_ms integer,
    tokens_used integer,

    worker_id text,
    worker_version text,

    project_id text references projects(id) on delete cascade,
    created_by text,

    -- As the engine's own rows begin: nobody guesses the token that a claim will have.
    lease_token integer not null default (abs(random() % 1000000000)),
    lease_until text,
    run_after text,
    -- Of jobs with the same text and model one at a time has the turn; the others get its vector.
    has_turn integer not null default false,
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    -- Priority first, then age; ten minutes of waiting are worth one step of priority, so that nothing starves.
    claim_order text generated always as (
        strftime('%Y-%m-%dT%H:%M:%fZ', created_at,
            case priority when 'urgent' then '-30' when 'high' then '-20' when 'normal' then '-10' else '+0' end || ' minutes')
    ) virtual,

    constraint valid_attempts check (attempts >= 0 and attempts <= max_attempts),
    constraint completed_jobs_have_embedding check (
        (status = 'completed' and embedding_vector is not null) or
        (status != 'completed')
    )
);

-- Jobs that failed for good, for people to look at.
create table embedding_job_failures (
    id text primary key not null,
    rule_id text references rules(id) on delete cascade,
    status text not null default 'failed' check (status in ('pending', 'processing', 'completed', 'failed', 'retrying')),
    priority text not null check (priority in ('low', 'normal', 'high', 'urgent')),
    embedding_model text not null,
    input_text text not null,
    text_hash text not null,
    attempts integer not null,
    max_attempts integer not null,
    created_at text not null,
    started_at text,
    completed_at text,
    embedding_vector blob,
    embedding_dimensions integer,
    error_message text not null,
    processing_time_ms integer,
    tokens_used integer,
    worker_id text,
    worker_version text,
    project_id text references projects(id) on delete cascade,
    created_by text,
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    failed_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

create index idx_embedding_jobs_status on embedding_jobs(status);
create index idx_embedding_jobs_priority on embedding_jobs(priority, created_at);
create index idx_embedding_jobs_rule_id on embedding_jobs(rule_id);
create index idx_embedding_jobs_text_hash on embedding_jobs(text_hash);
create index idx_embedding_jobs_created_at on embedding_jobs(created_at);
create index idx_embedding_jobs_pending on embedding_jobs(priority, created_at) where status = 'pending';
create index idx_embedding_jobs_processing on embedding_jobs(started_at) where status = 'processing';
create index embedding_jobs_project on embedding_jobs(project_id);
create index embedding_jobs_embedded on embedding_jobs(embedding_model, text_hash) where status = 'completed';
create index embedding_job_failures_project on embedding_job_failures(project_id);
create index embedding_job_failures_created on embedding_job_failures(created_at, id);
create index embedding_job_failures_rule on embedding_job_failures(rule_id);
create index rules_project on rules(project_id);

-- What has changed since somebody last looked.
create index documents_updated on documents(updated_at);
create index embedding_jobs_updated on embedding_jobs(updated_at);
create index embedding_job_failures_updated on embedding_job_failures(updated_at);

-- A rule that is new or says something else gets a job; jobs for what it said before are no longer wanted.
-- keep
create trigger rules_make_job after insert on rules
begin
    insert into embedding_jobs (rule_id, input_text, text_hash, priority, embedding_model, project_id, has_turn)
    values (
        new.id,
        new.title || ' ' || new.guidance || ' ' || coalesce(new.rationale, ''),
        -- SQLite has no md5: whoever takes the job writes the hash down. Until then it is one of its kind.
        '?' || lower(hex(randomblob(16))),
        case new.priority when 'critical' then 'urgent' when 'high' then 'high' else 'normal' end,
        coalesce((select embedding_model from embedding_defaults), 'nomic-embed-text'),
        new.project_id,
        true
    );
end;
-- end

-- keep
create trigger rules_make_job_again after update on rules
when (old.title || ' ' || old.guidance || ' ' || coalesce(old.rationale, '')) is not (new.title || ' ' || new.guidance || ' ' || coalesce(new.rationale, ''))
begin
    delete from embedding_jobs
    where rule_id = new.id and status in ('pending', 'retrying')
        and input_text = old.title || ' ' || old.guidance || ' ' || coalesce(old.rationale, '');
    insert into embedding_jobs (rule_id, input_text, text_hash, priority, embedding_model, project_id, has_turn)
    values (
        new.id,
        new.title || ' ' || new.guidance || ' ' || coalesce(new.rationale, ''),
        -- SQLite has no md5: whoever takes the job writes the hash down. Until then it is one of its kind.
        '?' || lower(hex(randomblob(16))),
        case new.priority when 'critical' then 'urgent' when 'high' then 'high' else 'normal' end,
        coalesce((select embedding_model from embedding_defaults), 'nomic-embed-text'),
        new.project_id,
        true
    );
end;
-- end

-- A vector answers every job that waits for the same text and model, and goes to their rules while these still say it.
-- By the hash alone: `coalesce` keeps planners from the index on the status, which finds every job that waits or was ever done.
-- keep
create trigger embedding_jobs_share after update of status on embedding_jobs
when new.status = 'completed' and old.status <> 'completed'
begin
    -- The engine has done so already; others who complete a job would leave its twins without a turn for ever.
    update embedding_jobs set has_turn = false where id = new.id and new.has_turn;
    update embedding_jobs
    set status = 'completed', completed_at = new.completed_at, updated_at = new.completed_at, run_after = null, error_message = null,
        embedding_vector = new.embedding_vector, embedding_dimensions = new.embedding_dimensions,
        processing_time_ms = 0, tokens_used = 0, worker_id = new.worker_id, worker_version = new.worker_version
    where text_hash = new.text_hash and embedding_model = new.embedding_model
        and coalesce(status in ('pending', 'retrying'), false) and not has_turn;
    update rules
    set embedding = new.embedding_vector, embedding_model = new.embedding_model, embedding_text_hash = new.text_hash
    where id in (
            select rule_id from embedding_jobs
            where text_hash = new.text_hash and embedding_model = new.embedding_model
                and rule_id is not null and coalesce(status = 'completed', false)
        )
        and rules.title || ' ' || rules.guidance || ' ' || coalesce(rules.rationale, '') = new.input_text
        and (embedding is null or embedding_text_hash is not new.text_hash or embedding_model is not new.embedding_model);
end;
-- end

-- keep
create trigger embedding_jobs_share_new after insert on embedding_jobs
when new.status = 'completed'
begin
    update embedding_jobs
    set status = 'completed', completed_at = new.completed_at, updated_at = new.completed_at, run_after = null, error_message = null,
        embedding_vector = new.embedding_vector, embedding_dimensions = new.embedding_dimensions,
        processing_time_ms = 0, tokens_used = 0, worker_id = new.worker_id, worker_version = new.worker_version
    where text_hash = new.text_hash and embedding_model = new.embedding_model
        and coalesce(status in ('pending', 'retrying'), false) and not has_turn;
    update rules
    set embedding = new.embedding_vector, embedding_model = new.embedding_model, embedding_text_hash = new.text_hash
    where id in (
            select rule_id from embedding_jobs
            where text_hash = new.text_hash and embedding_model = new.embedding_model
                and rule_id is not null and coalesce(status = 'completed', false)
        )
        and rules.title || ' ' || rules.guidance || ' ' || coalesce(rules.rationale, '') = new.input_text
        and (embedding is null or embedding_text_hash is not new.text_hash or embedding_model is not new.embedding_model);
end;
-- end

-- A job that failed for good leaves the queue in the same transaction.
-- keep
create trigger embedding_jobs_bury after update of status on embedding_jobs
when new.status = 'failed' and old.status <> 'failed'
begin
    insert into embedding_job_failures (
        id, rule_id, priority, embedding_model, input_text, text_hash, attempts, max_attempts, created_at, started_at,
        completed_at, error_message, processing_time_ms, tokens_used, worker_id, worker_version, project_id, created_by
    ) values (
        new.id, new.rule_id, new.priority, new.embedding_model, new.input_text, new.text_hash, new.attempts,
        new.max_attempts, new.created_at, new.started_at, new.completed_at,
        case when new.attempts >= new.max_attempts then 'Max attempts exceeded: ' else '' end
            || coalesce(new.error_message, 'no reason was given'),
        new.processing_time_ms, new.tokens_used, new.worker_id,
        coalesce(new.worker_version, (select version from worker_processes where id = new.worker_id)),
        new.project_id, new.created_by
    );
    delete from embedding_jobs where id = new.id;
end;
-- end

-- Workers elsewhere register here too, and say what they can do.
alter table worker_processes add column version text;
alter table worker_processes add column capabilities text not null default '{}';
-- "process": runs lanes of its own; "remote": takes work over HTTP.
alter table worker_processes add column kind text not null default 'process' check (kind in ('process', 'remote'));
alter table worker_processes add column left_at text;
