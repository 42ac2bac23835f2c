-- What the chunks speak of: entities, relations between them, and where each was found.
-- A mention goes with its chunk, an entity or relation with its last mention. Writers lock in one order: chunks,
-- entities, relations, each sorted by its key.

-- No foreign key to task_queue_chunk: a removal is carried out after the chunk's row is gone.
create table graph_chunks (
    chunk_key text primary key not null,
    chunk_id text not null,
    document_id text not null,
    tenant text not null,
    collection text not null
);
create index graph_chunks_document on graph_chunks (document_id, chunk_key);

create table entities (
    id text primary key not null,
    tenant text not null,
    collection text not null,
    -- As it was written where it was first found.
    name text not null,
    normalised_name text not null,
    type text not null,
    -- Kept by the writers; an entity may only go while it is locked and this is 0.
    mention_count integer not null,
    unique (tenant, normalised_name, type, collection)
);
create index entities_by_mentions on entities (tenant, mention_count desc, normalised_name, id);

create table entity_mentions (
    entity_id text not null references entities(id) on delete cascade,
    chunk_key text not null references graph_chunks(chunk_key) on delete cascade,
    start_offset integer not null,
    end_offset integer not null,
    confidence real not null,
    primary key (entity_id, chunk_key, start_offset, end_offset)
) without rowid;
create index entity_mentions_chunk on entity_mentions (chunk_key);

create table relations (
    id text primary key not null,
    tenant text not null,
    collection text not null,
    source_id text not null references entities(id) on delete cascade,
    target_id text not null references entities(id) on delete cascade,
    type text not null,
    mention_count integer not null,
    unique (source_id, target_id, type)
);
create index relations_target on relations (target_id);

create table relation_mentions (
    relation_id text not null references relations(id) on delete cascade,
    chunk_key text not null references graph_chunks(chunk_key) on delete cascade,
    start_offset integer not null,
    end_offset integer not null,
    confidence real not null,
    primary key (relation_id, chunk_key, start_offset, end_offset)
) without rowid;
create index relation_mentions_chunk on relation_mentions (chunk_key);
