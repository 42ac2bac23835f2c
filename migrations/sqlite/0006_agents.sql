-- Function tasks: every step of an agent is a row, and tasks of one entity run one at a time.
-- Times are ISO 8601 in UTC. JSON is text.

-- What a question becomes: a plan, the work it takes, an answer.
create table planners (
    planner_id text primary key not null default (lower(hex(randomblob(16)))),
    user_question text not null default '',
    instruction text not null default '',
    -- Null: the default one.
    tenant text,
    -- Null: all of the tenant's.
    collection text,
    plan text,
    status text not null default 'PENDING' check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    answer text,
    citations text,
    -- What the reader of the answer should know about it.
    notes text,
    -- "working" until its last worker has ended.
    phase text not null default 'planning' check (phase in ('planning', 'working', 'synthesis')),
    tokens_used integer not null default 0,
    error_message text,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    started_at text,
    finished_at text,
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

-- A part of a plan. Processes that run lanes are in worker_processes.
create table workers (
    worker_id text primary key not null default (lower(hex(randomblob(16)))),
    planner_id text references planners(planner_id) on delete cascade,
    -- Its place in the plan.
    position integer not null default 0,
    kind text not null default 'standard' check (kind in ('standard', 'sql')),
    task text not null default '',
    status text not null default 'PENDING' check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')),
    result text,
    tokens_used integer not null default 0,
    error_message text,
    created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    started_at text,
    finished_at text,
    updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ'))
);

create index planners_created on planners(created_at, planner_id);
create index workers_planner on workers(planner_id, position);

-- What is over, oldest first, for retention. A worker of a plan goes with its planner.
create index planners_over on planners(updated_at) where status in ('COMPLETED', 'FAILED');
create index workers_over on workers(updated_at) where planner_id is null and status in ('COMPLETED', 'FAILED');

create table task_queue (
    task_id text not null default (lower(hex(randomblob(16)))),
    entity_type text not null,
    entity_id text not null,
    function_name text not null,
    payload json,
    status text not null default 'PENDING',
    error_message text,
    retry_count integer not null default 0,
    max_retries integer not null default 3,
    created_at timestamp not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
    -- Of a task that is over: when it ended.
    updated_at timestamp not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),

    -- A task that failed and will be tried again waits until then.
    retry_after text,
    started_at text,
    -- The process that works on it.
    claimed_by text,
    -- As the engine's own rows begin: nobody guesses the token that a claim will have.
    lease_token integer not null default (abs(random() % 1000000000)),
    lease_until text,
    -- Of an entity's tasks one at a time has the turn: the one that runs, or the one that is next.
    has_turn integer not null default false,

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
create trigger task_queue_updated_at
after update of entity_type, entity_id, function_name, payload, status, error_message, retry_count, max_retries, retry_after on task_queue
when new.updated_at = old.updated_at
begin
    update task_queue set updated_at = strftime('%Y-%m-%dT%H:%M:%fZ') where task_id = new.task_id;
end;
-- end

-- Back to PENDING from IN_PROGRESS: given back, tried again, or taken from a worker that fell silent.
-- keep
create trigger task_queue_transition before update of status on task_queue
when old.status <> new.status and not (
    (old.status = 'PENDING' and new.status = 'IN_PROGRESS') or
    (old.status = 'IN_PROGRESS' and new.status in ('COMPLETED', 'FAILED', 'PENDING')) or
    (old.status = 'FAILED' and new.status = 'PENDING')
) and new.status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')
begin
    select raise(abort, 'invalid status transition: ' || old.status || ' → ' || new.status);
end;
-- end

-- SQLite has no foreign key that depends on a column's value.
-- keep
create trigger task_queue_planner_exists before insert on task_queue
when new.entity_type = 'planner' and new.entity_id is not null and not exists (select 1 from planners where planner_id = new.entity_id)
begin
    select raise(abort, 'there is no planner ' || new.entity_id || ' for this task');
end;
-- end

-- keep
create trigger task_queue_worker_exists before insert on task_queue
when new.entity_type = 'worker' and new.entity_id is not null and not exists (select 1 from workers where worker_id = new.entity_id)
begin
    select raise(abort, 'there is no worker ' || new.entity_id || ' for this task');
end;
-- end

-- keep
create trigger task_queue_entity_stays before update of entity_type, entity_id on task_queue
when new.entity_type <> old.entity_type or new.entity_id <> old.entity_id
begin
    select raise(abort, 'a task stays with its entity');
end;
-- end

-- keep
create trigger planners_take_tasks after delete on planners
begin
    delete from task_queue where entity_type = 'planner' and entity_id = old.planner_id;
end;
-- end

-- keep
create trigger workers_take_tasks after delete on workers
begin
    delete from task_queue where entity_type = 'worker' and entity_id = old.worker_id;
end;
-- end

-- The engine passes turns itself. Whoever else starts a task takes its entity's turn from the one that waits, and is
-- refused while another runs; whoever ends one gives the turn up, or the entity would stand still for ever.
-- keep
create trigger task_queue_take_turn after update of status on task_queue
when new.status = 'IN_PROGRESS' and not new.has_turn
begin
    update task_queue set has_turn = false
    where entity_type = new.entity_type and entity_id = new.entity_id and has_turn = true and status = 'PENDING';
    update task_queue set has_turn = true where task_id = new.task_id;
end;
-- end

-- keep
create trigger task_queue_begin_with_turn after insert on task_queue
when new.status = 'IN_PROGRESS' and not new.has_turn
begin
    update task_queue set has_turn = false
    where entity_type = new.entity_type and entity_id = new.entity_id and has_turn = true and status = 'PENDING';
    update task_queue set has_turn = true where task_id = new.task_id;
end;
-- end

-- Whoever held it before, and believes to hold it still, has lost it.
-- keep
create trigger task_queue_start_unheld after update of status on task_queue
when new.status = 'IN_PROGRESS' and old.status <> 'IN_PROGRESS' and new.lease_token = old.lease_token
begin
    update task_queue set lease_token = lease_token + 1, lease_until = null, claimed_by = null, retry_after = null
    where task_id = new.task_id;
end;
-- end

-- keep
create trigger task_queue_give_turn after update of status on task_queue
when new.status in ('COMPLETED', 'FAILED') and new.has_turn
begin
    update task_queue set has_turn = false where task_id = new.task_id;
end;
-- end

-- The last worker of a plan to end, however it ends, has the answer put together: once, in its own transaction.
-- keep
create trigger workers_ended after update of status on workers
when new.status in ('COMPLETED', 'FAILED') and old.status in ('PENDING', 'IN_PROGRESS')
begin
    update planners set phase = 'synthesis', updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where planner_id = new.planner_id and phase = 'working'
        and not exists (select 1 from workers where planner_id = new.planner_id and status in ('PENDING', 'IN_PROGRESS'));
    insert into task_queue (entity_type, entity_id, function_name, has_turn)
    select 'planner', new.planner_id, 'execute_synthesis',
        not exists (select 1 from task_queue where entity_type = 'planner' and entity_id = new.planner_id and has_turn = true)
    where changes() = 1;
end;
-- end

-- A task that failed for good fails its entity.
-- keep
create trigger task_queue_failed after update of status on task_queue
when new.status = 'FAILED' and old.status <> 'FAILED'
begin
    update workers set status = 'FAILED', error_message = new.error_message, finished_at = strftime('%Y-%m-%dT%H:%M:%fZ'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where new.entity_type = 'worker' and worker_id = new.entity_id and status in ('PENDING', 'IN_PROGRESS');
    update planners set status = 'FAILED', error_message = new.error_message, finished_at = strftime('%Y-%m-%dT%H:%M:%fZ'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where new.entity_type = 'planner' and planner_id = new.entity_id and status in ('PENDING', 'IN_PROGRESS');
end;
-- end

-- So does one that is cancelled.
-- keep
create trigger task_queue_cancelled after delete on task_queue
when old.status in ('PENDING', 'IN_PROGRESS')
begin
    update workers set status = 'FAILED', error_message = old.function_name || ' was cancelled', finished_at = strftime('%Y-%m-%dT%H:%M:%fZ'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where old.entity_type = 'worker' and worker_id = old.entity_id and status in ('PENDING', 'IN_PROGRESS');
    update planners set status = 'FAILED', error_message = old.function_name || ' was cancelled', finished_at = strftime('%Y-%m-%dT%H:%M:%fZ'), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where old.entity_type = 'planner' and planner_id = old.entity_id and status in ('PENDING', 'IN_PROGRESS');
end;
-- end

-- One that is tried again opens its entity anew; an answer that went without it is put together again.
-- keep
create trigger task_queue_revived after update of status on task_queue
when old.status = 'FAILED' and new.status = 'PENDING'
begin
    update planners set status = 'IN_PROGRESS', error_message = null, finished_at = null, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where new.entity_type = 'planner' and planner_id = new.entity_id and status = 'FAILED';
    update planners set status = 'IN_PROGRESS', phase = 'working', error_message = null, finished_at = null, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where new.entity_type = 'worker' and phase = 'synthesis'
        and planner_id = (select planner_id from workers where worker_id = new.entity_id and status = 'FAILED');
    update workers set status = 'PENDING', error_message = null, finished_at = null, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ')
    where new.entity_type = 'worker' and worker_id = new.entity_id and status = 'FAILED';
end;
-- end
