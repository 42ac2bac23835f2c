-- The unified ingestion queue: everything that changes comes in through one table.
-- Times are the database's own. JSON is text, as the design has it.

create table unified_queue (
    queue_id text primary key not null,
    item_type text not null check (item_type in ('content', 'file', 'folder', 'project', 'library', 'delete_tenant', 'delete_document', 'rename')),
    op text not null check (op in ('ingest', 'update', 'delete', 'scan')),
    tenant_id text not null,
    collection text not null,
    priority integer not null default 5 check (priority between 0 and 10),
    status text not null default 'pending' check (status in ('pending', 'in_progress', 'done', 'failed')),
    created_at timestamp with time zone not null default now(),
    updated_at timestamp with time zone not null default now(),
    lease_until timestamp with time zone,
    worker_id text,
    idempotency_key text not null,
    payload_json text not null,
    retry_count integer not null default 0,
    max_retries integer not null default 3,
    error_message text,
    last_error_at timestamp with time zone,
    branch text default 'main',
    metadata text default '{}',

    lease_token bigint not null default 0,
    run_after timestamp with time zone,
    -- A longer lease than usual, for items that take long.
    lease_ms integer,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    -- Its tenant's place in line: tenants take turns among items of one priority.
    fair_tag bigint not null default 0,
    -- What the item became, or what is known of its end: how many files, which document.
    result_json text,
    -- The scan that found it.
    parent_id text,
    -- The document that it became, from the moment that there is one.
    document_id text,
    -- The same key came again while the item was being worked on: this is what to do afterwards.
    next_op text,
    next_payload_json text,
    next_metadata text,
    next_priority integer,
    next_fair_tag bigint,
    -- When this key came last, and what that came to; "retried": nobody enqueued it, but somebody put it back into line.
    enqueued_at timestamp with time zone,
    last_enqueue text not null default 'queued' check (last_enqueue in ('queued', 'merged', 'runs_again', 'requeued', 'retried')),

    constraint operation_fits_item_type check (
        (item_type in ('content', 'file', 'library') and op in ('ingest', 'update', 'delete')) or
        (item_type in ('folder', 'project') and op in ('ingest', 'delete', 'scan')) or
        (item_type in ('delete_tenant', 'delete_document') and op = 'delete') or
        (item_type = 'rename' and op = 'update')
    )
);

create index idx_unified_queue_dequeue on unified_queue(status, priority desc, created_at);
-- Unique per tenant, so that two tenants never swallow each other's items.
create unique index idx_unified_queue_idempotency on unified_queue(idempotency_key, tenant_id);
create index idx_unified_queue_lease_expiry on unified_queue(lease_until) where status = 'in_progress';
create index idx_unified_queue_collection_tenant on unified_queue(collection, tenant_id);
create index idx_unified_queue_item_type on unified_queue(item_type, status);
create index idx_unified_queue_failed on unified_queue(status, last_error_at) where status = 'failed';
create index idx_unified_queue_worker on unified_queue(worker_id, status) where status = 'in_progress';

create index unified_queue_created on unified_queue(created_at, queue_id);
create index unified_queue_updated on unified_queue(updated_at);
create index unified_queue_turns on unified_queue(tenant_id, priority, fair_tag);
-- How far a family is can be counted in this index alone.
create index unified_queue_children on unified_queue(parent_id, item_type, status, document_id) where parent_id is not null;
-- Documents below a folder, for scans, deletions and renames.
create index documents_by_source on documents(tenant, source);

-- An item whose key came again while it was worked on goes back into line when it ends, with what came last.
-- keep
create function run_item_again() returns trigger language plpgsql as $$
begin
    update unified_queue
    set status = 'pending', op = new.next_op, payload_json = new.next_payload_json, metadata = new.next_metadata,
        priority = new.next_priority, fair_tag = coalesce(new.next_fair_tag, fair_tag), next_fair_tag = null, next_op = null, next_payload_json = null, next_metadata = null, next_priority = null,
        retry_count = 0, run_after = null, completed_at = null, document_id = null, result_json = null
    where queue_id = new.queue_id;
    perform pg_notify('quarry', 'items');
    return null;
end $$;
-- end

create trigger unified_queue_run_again after update of status on unified_queue
    for each row when (new.next_op is not null and old.status = 'in_progress' and new.status <> 'in_progress')
    execute function run_item_again();

-- The tables that this queue replaces, where they were found, and what became of them.
create table legacy_tables (
    -- The database they are in; empty when it is this one.
    source text not null,
    name text not null,
    rows bigint not null,
    migrated_at timestamp with time zone not null,
    deprecated_at timestamp with time zone not null,
    dropped_at timestamp with time zone,
    primary key (source, name)
);

-- What became of each of their rows.
create table legacy_rows (
    id text primary key not null,
    table_name text not null,
    row_key text not null,
    outcome text not null check (outcome in ('brought', 'merged', 'finished', 'unmapped')),
    queue_id text,
    reason text,
    recorded_at timestamp with time zone not null,
    finished_at timestamp with time zone
);

create index legacy_rows_item on legacy_rows(queue_id) where queue_id is not null;
create index legacy_rows_unmapped on legacy_rows(table_name) where outcome = 'unmapped';

-- An item that is done is forgotten after a while; that its row was accounted for is not.
-- keep
create function finish_legacy_row() returns trigger language plpgsql as $$
begin
    update legacy_rows set finished_at = now() where queue_id = old.queue_id and finished_at is null;
    return null;
end $$;
-- end

create trigger unified_queue_legacy_finished after delete on unified_queue
    for each row when (old.status = 'done') execute function finish_legacy_row();
