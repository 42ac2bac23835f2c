-- Completing an embedding job costs less: most jobs have no twin and no rule, and one look-up tells that there is
-- nothing to do. Otherwise as before.
-- keep
create or replace function share_embedding() returns trigger language plpgsql set search_path from current as $$
begin
    if not new.has_turn and new.rule_id is null and not exists (
        select 1 from embedding_jobs where text_hash = new.text_hash and id <> new.id
    ) then
        return null;
    end if;
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
