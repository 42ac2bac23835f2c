-- Completing embedding jobs costs less: one look for all that a statement has completed, instead of a call for each of
-- them. Otherwise as before.

-- Only the dimensions of a model are asked of completed jobs by their model; twins are found by the index on the hash
-- alone. Keys by hash are spread over the whole index: every completion wrote to a page of its own.
drop index embedding_jobs_embedded;
create index embedding_jobs_completed on embedding_jobs(embedding_model) where status = 'completed';

drop trigger embedding_jobs_share on embedding_jobs;
drop trigger embedding_jobs_share_new on embedding_jobs;
drop function share_embedding();

-- keep
create function share_embedding(job embedding_jobs) returns void language plpgsql set search_path from current as $$
begin
    -- Rules first, then their jobs, as whoever changes a rule takes them: otherwise each might wait for the other.
    perform 1 from rules
    where id in (
            select rule_id from embedding_jobs
            where text_hash = job.text_hash and embedding_model = job.embedding_model and rule_id is not null
        )
        and rule_text(rules) = job.input_text
    order by id for no key update;
    -- The engine has done so already; others who complete a job would leave its twins without a turn for ever.
    if job.has_turn then
        update embedding_jobs set has_turn = false where id = job.id;
    end if;
    update embedding_jobs
    set status = 'completed', completed_at = now(), updated_at = now(), run_after = null, error_message = null,
        embedding_vector = job.embedding_vector, embedding_dimensions = job.embedding_dimensions,
        processing_time_ms = 0, tokens_used = 0, worker_id = job.worker_id, worker_version = job.worker_version
    where text_hash = job.text_hash and embedding_model = job.embedding_model
        and coalesce(status in ('pending', 'retrying'), false) and not has_turn;
    update rules
    set embedding = job.embedding_vector, embedding_model = job.embedding_model, embedding_text_hash = job.text_hash
    where id in (
            select rule_id from embedding_jobs
            where text_hash = job.text_hash and embedding_model = job.embedding_model
                and rule_id is not null and coalesce(status = 'completed', false)
        )
        and rule_text(rules) = job.input_text
        and (embedding is null or embedding_text_hash is distinct from job.text_hash
            or embedding_model is distinct from job.embedding_model);
end $$;
-- end

-- Most jobs have no twin and no rule: a look-up tells that there is nothing to do. A scalar sub-select, which no planner
-- can turn into a join with all jobs there are.
-- keep
create function share_updated_embeddings() returns trigger language plpgsql set search_path from current as $$
declare
    job embedding_jobs;
begin
    for job in
        select written.* from written join replaced using (id)
        where written.status = 'completed' and replaced.status <> 'completed'
            and (written.has_turn or written.rule_id is not null or (
                select 1 from embedding_jobs as twin
                where twin.text_hash = written.text_hash and twin.id <> written.id limit 1
            ) is not null)
        order by written.id
    loop
        perform share_embedding(job);
    end loop;
    return null;
end $$;
-- end

-- keep
create function share_inserted_embedding() returns trigger language plpgsql set search_path from current as $$
begin
    perform share_embedding(new);
    return null;
end $$;
-- end

create trigger embedding_jobs_share after update on embedding_jobs
    referencing old table as replaced new table as written
    for each statement when (pg_trigger_depth() = 0)
    execute function share_updated_embeddings();
create trigger embedding_jobs_share_new after insert on embedding_jobs
    for each row when (new.status = 'completed')
    execute function share_inserted_embedding();
