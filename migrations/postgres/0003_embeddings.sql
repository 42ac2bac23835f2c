-- Embedding jobs: a text and the vector it becomes. A rule makes its own job when it is written or changed.

-- Tables of an older system are used if they are of the same kind. Said before anything of theirs is touched: a trigger
-- that does not fit would refuse what that system writes.
-- keep
do $$
declare
    here text := current_schema();
    foreign_rules regclass := to_regclass(format('%I.rules', here));
    foreign_projects regclass := to_regclass(format('%I.projects', here));
    problem text;
begin
    problem := case
        when to_regtype(format('%I.job_status', here)) is not null
            or to_regtype(format('%I.job_priority', here)) is not null
            or to_regclass(format('%I.embedding_jobs', here)) is not null
            or to_regclass(format('%I.embedding_job_failures', here)) is not null
            then 'it has embedding_jobs, embedding_job_failures, job_status or job_priority already'
        when foreign_rules is not null and not exists (
            select 1 from pg_index as i join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
            where i.indrelid = foreign_rules and i.indisunique and i.indnkeyatts = 1 and i.indpred is null
                and a.attname = 'id' and a.atttypid = 'uuid'::regtype
        ) then 'its table rules has no key "id" of type uuid'
        when foreign_projects is not null and not exists (
            select 1 from pg_index as i join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
            where i.indrelid = foreign_projects and i.indisunique and i.indnkeyatts = 1 and i.indpred is null
                and a.attname = 'id' and a.atttypid = 'uuid'::regtype
        ) then 'its table projects has no key "id" of type uuid'
        when foreign_rules is not null and 2 > (
            select count(*) from pg_attribute
            where attrelid = foreign_rules and attname in ('title', 'guidance') and not attisdropped
        ) then 'its table rules has no columns "title" and "guidance"'
        when foreign_rules is not null and exists (
            select 1 from pg_attribute
            where attrelid = foreign_rules and attname = 'project_id' and atttypid <> 'uuid'::regtype and not attisdropped
        ) then 'the column project_id of its table rules is no uuid'
    end;
    if problem is not null then
        raise exception 'the schema "%" belongs to another system: %. Give Quarry one of its own: create schema quarry, and add ?options=-c%%20search_path%%3Dquarry to DATABASE_URL', here, problem;
    end if;
end $$;
-- end

create type job_status as enum ('pending', 'processing', 'completed', 'failed', 'retrying');
create type job_priority as enum ('low', 'normal', 'high', 'urgent');

create table if not exists projects (
    id uuid primary key default gen_random_uuid(),
    name text not null,
    created_at timestamp with time zone not null default now()
);

-- A rules table of an older system is kept and gets the columns it lacks.
create table if not exists rules (
    id uuid primary key default gen_random_uuid(),
    rule_id text not null,
    title text not null,
    guidance text not null
);

alter table rules
    add column if not exists rationale text,
    add column if not exists priority text not null default 'medium',
    add column if not exists project_id uuid references projects(id) on delete cascade,
    -- Which model made the vector, and of which text: the rule may have changed since.
    add column if not exists embedding_model text,
    add column if not exists embedding_text_hash text,
    add column if not exists created_at timestamp with time zone not null default now(),
    add column if not exists updated_at timestamp with time zone not null default now();

-- The model of jobs that a rule makes, as the settings of the running system say.
create table embedding_defaults (
    is_only boolean primary key default true check (is_only),
    embedding_model text not null
);

create table embedding_jobs (
    id uuid primary key default gen_random_uuid(),
    -- Null: a text that belongs to no rule.
    rule_id uuid references rules(id) on delete cascade,

    status job_status not null default 'pending',
    priority job_priority not null default 'normal',
    embedding_model text not null default 'nomic-embed-text',

    input_text text not null,
    text_hash text not null,

    attempts integer not null default 0,
    max_attempts integer not null default 3,

    created_at timestamp with time zone not null default now(),
    started_at timestamp with time zone,
    completed_at timestamp with time zone,

    embedding_dimensions integer,
    error_message text,
    processing_time_ms integer,
    tokens_used integer,

    worker_id text,
    worker_version text,

    project_id uuid references projects(id) on delete cascade,
    created_by uuid,

    -- As the engine's own rows begin: nobody guesses the token that a claim will have.
    lease_token bigint not null default floor(random() * 1000000000)::bigint,
    lease_until timestamp with time zone,
    run_after timestamp with time zone,
    -- Of jobs with the same text and model one at a time has the turn; the others get its vector.
    has_turn boolean not null default false,
    updated_at timestamp with time zone not null default now(),
    -- Priority first, then age; ten minutes of waiting are worth one step of priority, so that nothing starves.
    claim_order timestamp generated always as (
        (created_at at time zone 'UTC') - interval '10 minutes' *
            case priority when 'urgent' then 3 when 'high' then 2 when 'normal' then 1 else 0 end
    ) stored,

    constraint valid_attempts check (attempts >= 0 and attempts <= max_attempts)
);

-- Jobs that failed for good, for people to look at.
create table embedding_job_failures (
    id uuid primary key,
    rule_id uuid references rules(id) on delete cascade,
    status job_status not null default 'failed',
    priority job_priority not null,
    embedding_model text not null,
    input_text text not null,
    text_hash text not null,
    attempts integer not null,
    max_attempts integer not null,
    created_at timestamp with time zone not null,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    embedding_dimensions integer,
    error_message text not null,
    processing_time_ms integer,
    tokens_used integer,
    worker_id text,
    worker_version text,
    project_id uuid references projects(id) on delete cascade,
    created_by uuid,
    updated_at timestamp with time zone not null default now(),
    failed_at timestamp with time zone not null default now()
);

-- Real vectors where pgvector is there and may be used, arrays where not. The dimension follows the model.
-- keep
do $$
declare
    vector_type text := 'real[]';
begin
    begin
        create extension if not exists vector;
    exception when others then
        raise notice 'pgvector cannot be used (%): vectors are kept as real[]', sqlerrm;
    end;
    if to_regtype('vector') is not null then
        vector_type := 'vector';
    end if;
    execute format('alter table embedding_jobs add column embedding_vector %s', vector_type);
    execute format('alter table embedding_job_failures add column embedding_vector %s', vector_type);
    execute format('alter table rules add column if not exists embedding %s', vector_type);
    -- Where people sign in through Supabase, a job knows who made it.
    if to_regclass('auth.users') is not null then
        alter table embedding_jobs add foreign key (created_by) references auth.users(id) on delete set null;
        create index embedding_jobs_created_by on embedding_jobs(created_by);
    end if;
end $$;
-- end

alter table embedding_jobs add constraint completed_jobs_have_embedding check (
    (status = 'completed' and embedding_vector is not null) or
    (status != 'completed')
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

-- What a rule says, as one text. In an older system's table its parts may be of other types.
-- keep
create function rule_text(rule rules) returns text language sql immutable as $$
    select rule.title::text || ' ' || rule.guidance::text || ' ' || coalesce(rule.rationale::text, '')
$$;
-- end

-- A rule that is new or says something else gets a job; jobs for what it said before are no longer wanted. The search
-- path is the one of these tables: whoever writes a rule may have another.
-- keep
create function make_rule_job() returns trigger language plpgsql set search_path from current as $$
declare
    new_text text := rule_text(new);
    new_hash text := md5(new_text);
    new_id uuid := gen_random_uuid();
    new_model text := coalesce((select embedding_model from embedding_defaults), 'nomic-embed-text');
    twin embedding_jobs%rowtype;
begin
    if tg_op = 'UPDATE' then
        if rule_text(old) is not distinct from new_text then
            return null;
        end if;
        delete from embedding_jobs
        where rule_id = new.id and status in ('pending', 'retrying') and input_text = rule_text(old);
    end if;
    -- In an older system's table a part may be missing; then there is nothing to embed.
    if new_text is null then
        return null;
    end if;
    select * into twin from embedding_jobs
    where text_hash = new_hash and embedding_model = new_model and status = 'completed' limit 1;
    insert into embedding_jobs (
        id, rule_id, input_text, text_hash, priority, embedding_model, project_id, status,
        started_at, completed_at, embedding_vector, embedding_dimensions, processing_time_ms, tokens_used
    ) values (
        new_id, new.id, new_text, new_hash,
        case new.priority::text
            when 'critical' then 'urgent'::job_priority
            when 'high' then 'high'::job_priority
            else 'normal'::job_priority
        end,
        -- The projects of an older system may be elsewhere.
        new_model, (select id from projects where id = new.project_id),
        case when twin.id is null then 'pending'::job_status else 'completed'::job_status end,
        case when twin.id is not null then now() end, case when twin.id is not null then now() end,
        twin.embedding_vector, twin.embedding_dimensions,
        case when twin.id is not null then 0 end, case when twin.id is not null then 0 end
    );
    if twin.id is not null then
        return null;
    end if;
    begin
        update embedding_jobs set has_turn = true where id = new_id and not exists (
            select 1 from embedding_jobs as other
            where other.text_hash = new_hash and other.embedding_model = new_model and other.has_turn
        );
    exception when unique_violation then
        null; -- Another job of the same text was first; its vector will do.
    end;
    perform pg_notify('quarry', 'embeddings');
    return null;
end $$;
-- end

create trigger rules_make_jobs after insert or update on rules
    for each row execute function make_rule_job();

-- A vector answers every job that waits for the same text and model, and goes to their rules while these still say it.
-- By the hash alone: `coalesce` keeps planners from the index on the status, which finds every job that waits or was ever done.
-- keep
create function share_embedding() returns trigger language plpgsql set search_path from current as $$
begin
    -- Rules first, then their jobs, as whoever changes a rule takes them: otherwise each might wait for the other.
    perform 1 from rules
    where id in (
            select rule_id from embedding_jobs
            where text_hash = new.text_hash and embedding_model = new.embedding_model and rule_id is not null
        )
        and rule_text(rules) = new.input_text
    order by id for no key update;
    -- The engine has done so already; others who complete a job would leave its twins without a turn for ever.
    if new.has_turn then
        update embedding_jobs set has_turn = false where id = new.id;
    end if;
    update embedding_jobs
    set status = 'completed', completed_at = now(), updated_at = now(), run_after = null, error_message = null,
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
        and rule_text(rules) = new.input_text
        and (embedding is null or embedding_text_hash is distinct from new.text_hash
            or embedding_model is distinct from new.embedding_model);
    return null;
end $$;
-- end

create trigger embedding_jobs_share after update of status on embedding_jobs
    for each row when (new.status = 'completed' and old.status <> 'completed' and pg_trigger_depth() = 0)
    execute function share_embedding();
create trigger embedding_jobs_share_new after insert on embedding_jobs
    for each row when (new.status = 'completed')
    execute function share_embedding();

-- A job that failed for good leaves the queue in the same transaction.
-- keep
create function bury_embedding_job() returns trigger language plpgsql set search_path from current as $$
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
    return null;
end $$;
-- end

create trigger embedding_jobs_bury after update of status on embedding_jobs
    for each row when (new.status = 'failed' and old.status <> 'failed')
    execute function bury_embedding_job();

-- Workers elsewhere register here too, and say what they can do.
alter table worker_processes
    add column version text,
    add column capabilities jsonb not null default '{}',
    -- "process": runs lanes of its own; "remote": takes work over HTTP.
    add column kind text not null default 'process' check (kind in ('process', 'remote')),
    add column left_at timestamp with time zone;
