-- An embedding job is written with fewer indexes.

-- One process writes at a time, so no index has to refuse a second turn, and who has it is found by the index on the hash.
-- By hash every job had a page of its own rewritten here, once when it was made and once when it was completed.
drop index if exists embedding_jobs_embeddings_turn_95db6b;

-- Leases that ran out are among the few jobs that are processed, which have an index.
drop index if exists embedding_jobs_embeddings_lease_4c716c;

-- Most jobs belong to no project.
drop index embedding_jobs_project;
create index embedding_jobs_project on embedding_jobs(project_id) where project_id is not null;
