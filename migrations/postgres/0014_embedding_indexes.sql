-- An embedding job is written with fewer indexes: each update of it writes to every one that it is in.

-- Leases that ran out are among the few jobs that are processed, which have an index.
drop index if exists embedding_jobs_embeddings_lease_4c716c;

-- Most jobs belong to no project.
drop index embedding_jobs_project;
create index embedding_jobs_project on embedding_jobs(project_id) where project_id is not null;
