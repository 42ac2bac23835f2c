-- One process writes at a time, so no index has to refuse a second turn, and who has it is found by the index on the hash.
-- By hash every job had a page of its own rewritten here, once when it was made and once when it was completed.
drop index if exists embedding_jobs_embeddings_turn_95db6b;
