-- Completing an embedding job costs less.

-- Only the dimensions of a model are asked of completed jobs by their model. Keys by hash are spread over the whole
-- index: every completion rewrote a page of its own. Twins are found by the index on the hash alone.
drop index embedding_jobs_embedded;
create index embedding_jobs_completed on embedding_jobs(embedding_model) where status = 'completed';

-- As before, but most jobs have no twin and no rule: then one look-up tells that there is nothing to do.
drop trigger embedding_jobs_share;
-- keep
create trigger embedding_jobs_share after update of status on embedding_jobs
when new.status = 'completed' and old.status <> 'completed'
    and (
        new.has_turn or new.rule_id is not null
        or exists (select 1 from embedding_jobs as twin where twin.text_hash = new.text_hash and twin.rowid <> new.rowid)
    )
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
