-- Function tasks: every step of an agent is a row, and tasks of one entity run one at a time.
-- Times are the database's own.

-- What a question becomes: a plan, the work it takes, an answer.
create table planners (
    planner_id text primary key not null default replace(gen_random_uuid()::text, '-', ''),
    user_question text not null default '',
    instruction text not null default '',
    -- Null: the default one.
    tenant text,
    -- Null: all of the tenant's.
    collection text,
    plan jsonb,
    status text not null default 'PENDING' check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    answer text,
    citations jsonb,
    -- What the reader of the answer should know about it.
    notes jsonb,
    -- "working" until its last worker has ended.
    phase text not null default 'planning' check (phase in ('planning', 'working', 'synthesis')),
    tokens_used bigint not null default 0,
    error_message text,
    created_at timestamp with time zone not null default now(),
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    updated_at timestamp with time zone not null default now()
);

-- A part of a plan. Processes that run lanes are in worker_processes.
create table workers (
    worker_id text primary key not null default replace(gen_random_uuid()::text, '-', ''),
    planner_id text references planners(planner_id) on delete cascade,
    -- Its place in the plan.
    position integer not null default 0,
    kind text not null default 'standard' check (kind in ('standard', 'sql')),
    task text not null default '',
    status text not null default 'PENDING' check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    result jsonb,
    tokens_used bigint not null default 0,
    error_message text,
    created_at timestamp with time zone not null default now(),
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    updated_at timestamp with time zone not null default now()
);

create index planners_created on planners(created_at, planner_id);
create index workers_planner on workers(planner_id, position);

-- What is over, oldest first, for retention. A worker of a plan goes with its planner.
create index planners_over on planners(updated_at) where status in ('COMPLETED', 'FAILED');
create index workers_over on workers(updated_at) where planner_id is null and status in ('COMPLETED', 'FAILED');

create table task_queue (
    task_id text not null default replace(gen_random_uuid()::text, '-', ''),
    entity_type text not null,
    entity_id text not null,
    function_name text not null,
    payload json,
    status text not null default 'PENDING',
    error_message text,
    retry_count integer not null default 0,
    max_retries integer not null default 3,
    -- The moment of the row, not of its transaction: rows of one transaction keep their order.
    created_at timestamp with time zone not null default clock_timestamp(),
    -- Of a task that is over: when it ended.
    updated_at timestamp with time zone not null default now(),

    -- A task that failed and will be tried again waits until then.
    retry_after timestamp with time zone,
    started_at timestamp with time zone,
    -- The process that works on it.
    claimed_by text,
    -- As the engine's own rows begin: nobody guesses the token that a claim will have.
    lease_token bigint not null default floor(random() * 1000000000)::bigint,
    lease_until timestamp with time zone,
    -- Of an entity's tasks one at a time has the turn: the one that runs, or the one that is next.
    has_turn boolean not null default false,

    constraint pk_task_queue primary key (task_id),
    constraint chk_entity_type check (entity_type in ('planner', 'worker')),
    constraint chk_status check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    constraint chk_retry_count_positive check (retry_count >= 0),
    constraint chk_max_retries_positive check (max_retries >= 0),
    constraint chk_retry_count_within_max check (retry_count <= max_retries),
    constraint chk_error_message_on_failure check ((status = 'FAILED' and error_message is not null) or (status != 'FAILED'))
);

create index idx_task_queue_status_created on task_queue(status, created_at);
create index idx_task_queue_entity on task_queue(entity_type, entity_id);
create index idx_task_queue_function on task_queue(function_name);
create index idx_task_queue_status_updated on task_queue(status, updated_at);

create index task_queue_created on task_queue(created_at, task_id);
create index task_queue_updated on task_queue(updated_at);

-- Not for the turn: it is passed with every task, and says nothing about it.
-- keep
create function touch_task() returns trigger language plpgsql as $$
begin
    new.updated_at := now();
    return new;
end $$;
-- end

create trigger task_queue_updated_at
    before update of entity_type, entity_id, function_name, payload, status, error_message, retry_count, max_retries, retry_after on task_queue
    for each row when (new.updated_at = old.updated_at) execute function touch_task();

-- Back to PENDING from IN_PROGRESS: given back, tried again, or taken from a worker that fell silent.
-- keep
create function refuse_task_transition() returns trigger language plpgsql as $$
begin
    raise exception 'invalid status transition: % → %', old.status, new.status using errcode = 'check_violation';
end $$;
-- end

create trigger task_queue_transition before update of status on task_queue
    for each row when (
        old.status <> new.status and not (
            (old.status = 'PENDING' and new.status = 'IN_PROGRESS') or
            (old.status = 'IN_PROGRESS' and new.status in ('COMPLETED', 'FAILED', 'PENDING')) or
            (old.status = 'FAILED' and new.status = 'PENDING')
        ) and new.status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')
    ) execute function refuse_task_transition();

-- As a foreign key does: the entity cannot go away before the task is there.
-- keep
create function check_task_entity() returns trigger language plpgsql as $$
begin
    if new.entity_id is null then
        return new;
    elsif new.entity_type = 'planner' then
        perform 1 from planners where planner_id = new.entity_id for key share;
    elsif new.entity_type = 'worker' then
        perform 1 from workers where worker_id = new.entity_id for key share;
    else
        return new;
    end if;
    if not found then
        raise exception 'there is no % % for this task', new.entity_type, new.entity_id using errcode = 'foreign_key_violation';
    end if;
    return new;
end $$;
-- end

create trigger task_queue_entity_exists before insert on task_queue
    for each row execute function check_task_entity();

-- keep
create function refuse_task_move() returns trigger language plpgsql as $$
begin
    raise exception 'a task stays with its entity' using errcode = 'check_violation';
end $$;
-- end

create trigger task_queue_entity_stays before update of entity_type, entity_id on task_queue
    for each row when (new.entity_type <> old.entity_type or new.entity_id <> old.entity_id)
    execute function refuse_task_move();

-- keep
create function delete_planner_tasks() returns trigger language plpgsql as $$
begin
    delete from task_queue where entity_type = 'planner' and entity_id = old.planner_id;
    return null;
end $$;
-- end

create trigger planners_take_tasks after delete on planners
    for each row execute function delete_planner_tasks();

-- keep
create function delete_worker_tasks() returns trigger language plpgsql as $$
begin
    delete from task_queue where entity_type = 'worker' and entity_id = old.worker_id;
    return null;
end $$;
-- end

create trigger workers_take_tasks after delete on workers
    for each row execute function delete_worker_tasks();

-- The engine passes turns itself. Whoever else starts a task takes its entity's turn from the one that waits, and is
-- refused while another runs; whoever ends one gives the turn up, or the entity would stand still for ever.
-- keep
create function take_task_turn() returns trigger language plpgsql as $$
begin
    update task_queue set has_turn = false
    where entity_type = new.entity_type and entity_id = new.entity_id and has_turn = true and status = 'PENDING' and task_id <> new.task_id;
    new.has_turn := true;
    return new;
end $$;
-- end

create trigger task_queue_take_turn before update of status on task_queue
    for each row when (new.status = 'IN_PROGRESS' and not new.has_turn) execute function take_task_turn();

create trigger task_queue_begin_with_turn before insert on task_queue
    for each row when (new.status = 'IN_PROGRESS' and not new.has_turn) execute function take_task_turn();

-- Whoever held it before, and believes to hold it still, has lost it.
-- keep
create function start_task_unheld() returns trigger language plpgsql as $$
begin
    new.lease_token := old.lease_token + 1;
    new.lease_until := null;
    new.claimed_by := null;
    new.retry_after := null;
    return new;
end $$;
-- end

create trigger task_queue_start_unheld before update of status on task_queue
    for each row when (new.status = 'IN_PROGRESS' and old.status <> 'IN_PROGRESS' and new.lease_token = old.lease_token)
    execute function start_task_unheld();

-- keep
create function give_task_turn() returns trigger language plpgsql as $$
begin
    new.has_turn := false;
    return new;
end $$;
-- end

create trigger task_queue_give_turn before update of status on task_queue
    for each row when (new.status in ('COMPLETED', 'FAILED') and new.has_turn) execute function give_task_turn();

-- The last worker of a plan to end, however it ends, has the answer put together: once, in its own transaction.
-- keep
create function end_worker() returns trigger language plpgsql as $$
begin
    -- Of two last workers that end at once the second waits here, and then sees the first.
    perform 1 from planners where planner_id = new.planner_id for no key update;
    update planners set phase = 'synthesis', updated_at = now()
    where planner_id = new.planner_id and phase = 'working'
        and not exists (select 1 from workers where planner_id = new.planner_id and status in ('PENDING', 'IN_PROGRESS'));
    if not found then
        return null;
    end if;
    begin
        insert into task_queue (entity_type, entity_id, function_name, has_turn)
        values ('planner', new.planner_id, 'execute_synthesis', true);
    exception when unique_violation then
        -- Another task of the planner has the turn, and will pass it on.
        insert into task_queue (entity_type, entity_id, function_name)
        values ('planner', new.planner_id, 'execute_synthesis');
    end;
    return null;
end $$;
-- end

create trigger workers_ended after update of status on workers
    for each row when (new.status in ('COMPLETED', 'FAILED') and old.status in ('PENDING', 'IN_PROGRESS'))
    execute function end_worker();

-- A task that failed for good, or was cancelled, fails its entity.
-- keep
create function fail_entity() returns trigger language plpgsql as $$
declare
    why text := case when tg_op = 'DELETE' then old.function_name || ' was cancelled' else new.error_message end;
begin
    if old.entity_type = 'worker' then
        update workers set status = 'FAILED', error_message = why, finished_at = now(), updated_at = now()
        where worker_id = old.entity_id and status in ('PENDING', 'IN_PROGRESS');
    else
        update planners set status = 'FAILED', error_message = why, finished_at = now(), updated_at = now()
        where planner_id = old.entity_id and status in ('PENDING', 'IN_PROGRESS');
    end if;
    return null;
end $$;
-- end

create trigger task_queue_failed after update of status on task_queue
    for each row when (new.status = 'FAILED' and old.status <> 'FAILED') execute function fail_entity();

create trigger task_queue_cancelled after delete on task_queue
    for each row when (old.status in ('PENDING', 'IN_PROGRESS')) execute function fail_entity();

-- One that is tried again opens its entity anew; an answer that went without it is put together again.
-- keep
create function revive_entity() returns trigger language plpgsql as $$
declare
    plan_of text;
begin
    if new.entity_type = 'planner' then
        update planners set status = 'IN_PROGRESS', error_message = null, finished_at = null, updated_at = now()
        where planner_id = new.entity_id and status = 'FAILED';
    else
        update workers set status = 'PENDING', error_message = null, finished_at = null, updated_at = now()
        where worker_id = new.entity_id and status = 'FAILED'
        returning planner_id into plan_of;
        update planners set status = 'IN_PROGRESS', phase = 'working', error_message = null, finished_at = null, updated_at = now()
        where phase = 'synthesis' and planner_id = plan_of;
    end if;
    return null;
end $$;
-- end

create trigger task_queue_revived after update of status on task_queue
    for each row when (old.status = 'FAILED' and new.status = 'PENDING') execute function revive_entity();
