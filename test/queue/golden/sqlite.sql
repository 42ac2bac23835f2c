create index if not exists "messages_mail_ready_ebc057" on "messages" ((case "urgency" when 'urgent' then 0 when 'high' then 1 when 'normal' then 2 else 3 end), "priority" desc, "created_at", "id") where "kind" = 'mail' and "status" in ('pending', 'retrying') and "run_after" is null and "attempts" < "max_attempts";

create index if not exists "messages_mail_delayed_b82fbd" on "messages" ("run_after") where "kind" = 'mail' and "status" in ('pending', 'retrying') and "run_after" is not null;

create index if not exists "messages_mail_lease_6537f6" on "messages" ("lease_until") where "kind" = 'mail' and "status" = 'processing';

create index if not exists "messages_mail_finished_93d42b" on "messages" ("status", "finished_at") where "status" in ('completed', 'failed');

create index if not exists "messages_sms_ready_ed02cf" on "messages" ("priority" desc, "created_at", "id") where "kind" = 'sms' and "status" = 'pending' and "run_after" is null and "attempts" < 3;

create index if not exists "messages_sms_delayed_e0fe13" on "messages" ("run_after") where "kind" = 'sms' and "status" = 'pending' and "run_after" is not null;

create index if not exists "messages_sms_lease_5ba0ff" on "messages" ("lease_until") where "kind" = 'sms' and "status" = 'processing';

create index if not exists "pages_pages_ocr_ready_f452ff" on "pages" ((case "ocr_status" when 'failed' then 0 else 1 end), "ocr_retry_count", "created_at", "id") where "ocr_status" in ('pending', 'failed') and "ocr_run_after" is null and "ocr_retry_count" < "max_retries";

create index if not exists "pages_pages_ocr_delayed_11f150" on "pages" ("ocr_run_after") where "ocr_status" in ('pending', 'failed') and "ocr_run_after" is not null;

create index if not exists "pages_pages_ocr_lease_0bbd45" on "pages" ("ocr_last_heartbeat") where "ocr_status" = 'processing';

create index if not exists "pages_by_document_id_ocr_status" on "pages" ("document_id", "ocr_status");

create index if not exists "pages_pages_vector_ready_8a351c" on "pages" ((case "vector_status" when 'failed' then 0 else 1 end), "vector_retry_count", "created_at", "id") where "vector_status" in ('pending', 'failed') and "vector_run_after" is null and "vector_retry_count" < "max_retries" and "ocr_status" = 'completed';

create index if not exists "pages_pages_vector_delayed_a8331b" on "pages" ("vector_run_after") where "vector_status" in ('pending', 'failed') and "vector_run_after" is not null;

create index if not exists "pages_pages_vector_lease_d5c0c6" on "pages" ("vector_last_heartbeat") where "vector_status" = 'processing';

create index if not exists "pages_by_document_id_vector_status" on "pages" ("document_id", "vector_status");

create index if not exists "chunks_ready_e23f13" on "chunks" ("created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3;

create index if not exists "chunks_delayed_c8235d" on "chunks" ("run_after") where "status" = 'pending' and "run_after" is not null;

create index if not exists "chunks_lease_b4cc08" on "chunks" ("lease_until") where "status" = 'processing';

create index if not exists "chunks_finished_24926b" on "chunks" ("status", "finished_at") where "status" in ('completed', 'failed');

create index if not exists "chunks_by_section_id_status" on "chunks" ("section_id", "status");

create index if not exists "sections_by_book_id_status" on "sections" ("book_id", "status");

create index if not exists "steps_ready_145073" on "steps" ("created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3 and "has_turn" = true;

create index if not exists "steps_delayed_54ca01" on "steps" ("run_after") where "status" = 'pending' and "run_after" is not null;

create index if not exists "steps_lease_cb3be6" on "steps" ("lease_until") where "status" = 'processing';

create unique index if not exists "steps_turn_0f54e7" on "steps" ("entity_type", "entity_id") where "has_turn" = true;

create index if not exists "steps_behind_d60f74" on "steps" ("entity_type", "entity_id", "created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3 and "has_turn" = false;

create index if not exists "strides_ready_0d9e1d" on "strides" ("created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3 and "has_turn" = true;

create index if not exists "strides_delayed_952714" on "strides" ("run_after") where "status" = 'pending' and "run_after" is not null;

create index if not exists "strides_behind_34829e" on "strides" ("entity_type", "entity_id", "created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3 and "has_turn" = false;

create index if not exists "errands_ready_280fb2" on "errands" ("place", "priority" desc, "created_at", "id") where "status" = 'pending' and "run_after" is null and "attempts" < 3;

create index if not exists "errands_delayed_15a138" on "errands" ("run_after") where "status" = 'pending' and "run_after" is not null;

create index if not exists "errands_lease_7cb06e" on "errands" ("lease_until") where "status" = 'processing';

-- mail.claim
select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, t."max_attempts" as q_attempts_max, t."recipient", t."payload" from "messages" as t indexed by "messages_mail_ready_ebc057" where t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."run_after" is null and t."attempts" < t."max_attempts" order by (case t."urgency" when 'urgent' then 0 when 'high' then 1 when 'normal' then 2 else 3 end), t."priority" desc, t."created_at", t."id" limit ?1;

-- mail.mark
update "messages" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?3 / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "attempts" = t."attempts" + 1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- mail.extend
update "messages" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?2 / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'mail' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- mail.complete
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'mail' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- mail.complete
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'mail' and t."status" = 'processing', false);

-- mail.fail
update "messages" as t set "status" = case when ((batch.value ->> 4) or t."attempts" >= t."max_attempts") then 'failed' when true then 'retrying' else t."status" end, "attempts" = t."attempts", "run_after" = case when ((batch.value ->> 4) or t."attempts" >= t."max_attempts") or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or t."attempts" >= t."max_attempts") then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or t."attempts" >= t."max_attempts") then null else t."worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'mail' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- mail.release
update "messages" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "attempts" = t."attempts" - 1, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'mail' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- mail.expire
update "messages" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."kind" = 'mail' and t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- mail.rescue
update "messages" as t set "status" = case when (t."attempts" >= t."max_attempts") then 'failed' when true then 'pending' else t."status" end, "attempts" = t."attempts", "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || t."attempts" || ' of ' || t."max_attempts" || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when (t."attempts" >= t."max_attempts") then ?1 end, "worker_id" = case when not (t."attempts" >= t."max_attempts") then null else t."worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "messages" as t indexed by "messages_mail_lease_6537f6" where t."kind" = 'mail' and t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."kind" = 'mail' and t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status;

-- mail.promote
update "messages" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "messages" as t indexed by "messages_mail_delayed_b82fbd" where t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status;

-- mail.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "messages" as t indexed by "messages_mail_delayed_b82fbd" where t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."run_after" is not null order by t."run_after" limit 1;

-- mail.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, t."max_attempts" as q_attempts_max from "messages" as t where t."id" in (select value from json_each(?1)) and coalesce(t."kind" = 'mail', false);

-- mail.cancel
update "messages" as t set "status" = 'cancelled', "lease_token" = t."lease_token" + 1, "run_after" = null, "lease_until" = null, "finished_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(t."kind" = 'mail', false) and coalesce(((t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."attempts" < t."max_attempts") or (t."kind" = 'mail' and t."status" = 'processing') or (t."kind" = 'mail' and t."status" in ('pending', 'retrying') and not (t."attempts" < t."max_attempts"))), false) returning "id" as q_key, "status" as q_status;

-- mail.retry
update "messages" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(t."kind" = 'mail', false) and coalesce(((t."kind" = 'mail' and t."status" = 'failed') or (t."kind" = 'mail' and t."status" in ('pending', 'retrying') and t."run_after" is not null) or (t."kind" = 'mail' and t."status" in ('pending', 'retrying') and not (t."attempts" < t."max_attempts")) or t."status" = 'cancelled' or (t."kind" = 'mail' and t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status;

-- mail.pruneDone
delete from "messages" as t where t."id" in (select t."id" from "messages" as t where t."kind" = 'mail' and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."kind" = 'mail' and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- mail.pruneFailed
delete from "messages" as t where t."id" in (select t."id" from "messages" as t where t."kind" = 'mail' and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."kind" = 'mail' and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- mail.completeWithResults
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "receipt" = nullif(batch.value -> '$[6]', 'null'), "priority" = batch.value ->> '$[7]', "bytes" = substr(?3, (batch.value ->> 2), (batch.value ->> 3)), "weights" = substr(?4, 4 * (batch.value ->> 4) - 3, 4 * (batch.value ->> 5)) from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'mail' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- mail.completeWithResults
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "receipt" = nullif(batch.value -> '$[6]', 'null'), "priority" = batch.value ->> '$[7]', "bytes" = substr(?3, (batch.value ->> 2), (batch.value ->> 3)), "weights" = substr(?4, 4 * (batch.value ->> 4) - 3, 4 * (batch.value ->> 5)) from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'mail' and t."status" = 'processing', false);

-- sms.claim
select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."recipient", t."payload" from "messages" as t indexed by "messages_sms_ready_ed02cf" where t."kind" = 'sms' and t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 order by t."priority" desc, t."created_at", t."id" limit ?1;

-- sms.mark
update "messages" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (max(?3, coalesce(t."lease_ms", 0)) / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- sms.extend
update "messages" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (max(?2, coalesce(t."lease_ms", 0)) / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'sms' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- sms.complete
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'sms' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- sms.complete
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."kind" = 'sms' and t."status" = 'processing', false);

-- sms.fail
update "messages" as t set "status" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "run_after" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'sms' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- sms.release
update "messages" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'sms' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- sms.expire
update "messages" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."kind" = 'sms' and t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- sms.rescue
update "messages" as t set "status" = case when ((t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."attempts" + 1) || ' of ' || 3 || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "messages" as t indexed by "messages_sms_lease_5ba0ff" where t."kind" = 'sms' and t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."kind" = 'sms' and t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status;

-- sms.promote
update "messages" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "messages" as t indexed by "messages_sms_delayed_e0fe13" where t."kind" = 'sms' and t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."kind" = 'sms' and t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status;

-- sms.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "messages" as t indexed by "messages_sms_delayed_e0fe13" where t."kind" = 'sms' and t."status" = 'pending' and t."run_after" is not null order by t."run_after" limit 1;

-- sms.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, 3 as q_attempts_max from "messages" as t where t."id" in (select value from json_each(?1)) and coalesce(t."kind" = 'sms', false);

-- sms.cancel
delete from "messages" as t where t."id" in (select value from json_each(?2)) and coalesce(t."kind" = 'sms', false) and coalesce(((t."kind" = 'sms' and t."status" = 'pending' and t."attempts" < 3) or (t."kind" = 'sms' and t."status" = 'processing') or (t."kind" = 'sms' and t."status" = 'pending' and not (t."attempts" < 3))), false) and ?1 is not null returning "id" as q_key, "status" as q_status;

-- sms.retry
update "messages" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(t."kind" = 'sms', false) and coalesce(((t."kind" = 'sms' and t."status" = 'failed') or (t."kind" = 'sms' and t."status" = 'pending' and t."run_after" is not null) or (t."kind" = 'sms' and t."status" = 'pending' and not (t."attempts" < 3)) or (t."kind" = 'sms' and t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status;

-- sms.pruneDone
delete from "messages" as t where t."id" in (select t."id" from "messages" as t where t."kind" = 'sms' and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."kind" = 'sms' and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- sms.pruneFailed
delete from "messages" as t where t."id" in (select t."id" from "messages" as t where t."kind" = 'sms' and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."kind" = 'sms' and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- sms.completeWithResults
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "receipt" = nullif(batch.value -> '$[4]', 'null'), "priority" = batch.value ->> '$[5]', "bytes" = substr(?3, (batch.value ->> 2), (batch.value ->> 3)) from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'sms' and t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- sms.completeWithResults
update "messages" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "receipt" = nullif(batch.value -> '$[4]', 'null'), "priority" = batch.value ->> '$[5]', "bytes" = substr(?3, (batch.value ->> 2), (batch.value ->> 3)) from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."kind" = 'sms' and t."status" = 'processing', false);

-- pages.ocr.claim
select t."id" as q_key, t."ocr_lease_token" + 1 as q_token, t."ocr_retry_count" + 1 as q_attempt, t."max_retries" as q_attempts_max, t."document_id" as q_parent, t."page_number", t."document_id" from "pages" as t indexed by "pages_pages_ocr_ready_f452ff" where t."ocr_status" in ('pending', 'failed') and t."ocr_run_after" is null and t."ocr_retry_count" < t."max_retries" order by (case t."ocr_status" when 'failed' then 0 else 1 end), t."ocr_retry_count", t."created_at", t."id" limit ?1;

-- pages.ocr.mark
update "pages" as t set "ocr_status" = 'processing', "ocr_lease_token" = t."ocr_lease_token" + 1, "ocr_last_heartbeat" = case when ?3 > 0 then ?1 end, "ocr_worker_id" = ?2, "ocr_started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- pages.ocr.extend
update "pages" as t set "ocr_last_heartbeat" = case when ?2 > 0 then ?1 end, "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."ocr_lease_token" = batch.value and coalesce(t."ocr_status" = 'processing', false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.complete
update "pages" as t set "ocr_status" = 'completed', "ocr_last_heartbeat" = null, "ocr_completed_at" = ?1, "ocr_error" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."ocr_lease_token" = batch.value and coalesce(t."ocr_status" = 'processing', false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.fail
update "pages" as t set "ocr_status" = 'failed', "ocr_retry_count" = case when ((batch.value ->> 4) or (t."ocr_retry_count" + 1) >= t."max_retries") then max((t."ocr_retry_count" + 1), t."max_retries") else (t."ocr_retry_count" + 1) end, "ocr_run_after" = case when ((batch.value ->> 4) or (t."ocr_retry_count" + 1) >= t."max_retries") or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "ocr_error" = (batch.value ->> 3), "ocr_last_heartbeat" = null, "ocr_completed_at" = case when ((batch.value ->> 4) or (t."ocr_retry_count" + 1) >= t."max_retries") then ?1 end, "ocr_worker_id" = case when not ((batch.value ->> 4) or (t."ocr_retry_count" + 1) >= t."max_retries") then null else t."ocr_worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."ocr_lease_token" = (batch.value ->> 1) and coalesce(t."ocr_status" = 'processing', false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.release
update "pages" as t set "ocr_status" = 'pending', "ocr_run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "ocr_last_heartbeat" = null, "ocr_worker_id" = null, "ocr_started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."ocr_lease_token" = (batch.value ->> 1) and coalesce(t."ocr_status" = 'processing', false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.expire
update "pages" as t set "ocr_last_heartbeat" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."ocr_status" = 'processing' and t."ocr_worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- pages.ocr.rescue
update "pages" as t set "ocr_status" = case when ((t."ocr_retry_count" + 1) >= t."max_retries") then 'failed' when true then 'pending' else t."ocr_status" end, "ocr_retry_count" = (t."ocr_retry_count" + 1), "ocr_lease_token" = t."ocr_lease_token" + 1, "ocr_run_after" = null, "ocr_error" = 'worker ' || coalesce(t."ocr_worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."ocr_retry_count" + 1) || ' of ' || t."max_retries" || ')', "ocr_last_heartbeat" = null, "ocr_completed_at" = case when ((t."ocr_retry_count" + 1) >= t."max_retries") then ?1 end, "ocr_worker_id" = case when not ((t."ocr_retry_count" + 1) >= t."max_retries") then null else t."ocr_worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "pages" as t indexed by "pages_pages_ocr_lease_0bbd45" where t."ocr_status" = 'processing' and t."ocr_last_heartbeat" < strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-60000 / 1000.0) || ' seconds') order by t."ocr_last_heartbeat" limit ?2) and coalesce(t."ocr_status" = 'processing' and t."ocr_last_heartbeat" < strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-60000 / 1000.0) || ' seconds'), false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.promote
update "pages" as t set "ocr_run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "pages" as t indexed by "pages_pages_ocr_delayed_11f150" where t."ocr_status" in ('pending', 'failed') and t."ocr_run_after" is not null and t."ocr_run_after" <= ?1 order by t."ocr_run_after" limit ?2) and coalesce(t."ocr_status" in ('pending', 'failed') and t."ocr_run_after" is not null and t."ocr_run_after" <= ?1, false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.nextDue
select (julianday(t."ocr_run_after") - julianday(?1)) * 86400000 as wait_ms from "pages" as t indexed by "pages_pages_ocr_delayed_11f150" where t."ocr_status" in ('pending', 'failed') and t."ocr_run_after" is not null order by t."ocr_run_after" limit 1;

-- pages.ocr.lookUp
select t."id" as q_key, t."ocr_status" as q_status, t."ocr_lease_token" as q_token, t."ocr_retry_count" as q_attempt, t."max_retries" as q_attempts_max from "pages" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- pages.ocr.cancel
delete from "pages" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."ocr_status" in ('pending', 'failed') and t."ocr_retry_count" < t."max_retries") or (t."ocr_status" = 'processing') or (t."ocr_status" = 'pending' and not (t."ocr_retry_count" < t."max_retries"))), false) and ?1 is not null returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.retry
update "pages" as t set "ocr_status" = 'pending', "ocr_lease_token" = t."ocr_lease_token" + 1, "ocr_retry_count" = 0, "ocr_run_after" = null, "ocr_last_heartbeat" = null, "ocr_worker_id" = null, "ocr_started_at" = null, "ocr_completed_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."ocr_status" = 'failed' and not (t."ocr_retry_count" < t."max_retries")) or (t."ocr_status" in ('pending', 'failed') and t."ocr_run_after" is not null) or (t."ocr_status" = 'pending' and not (t."ocr_retry_count" < t."max_retries")) or (t."ocr_status" = 'completed' and ?3)), false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.pruneDone
delete from "pages" as t where t."id" in (select t."id" from "pages" as t where t."ocr_status" = 'completed' and t."ocr_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."ocr_status", t."ocr_completed_at" limit ?3) and t."ocr_status" = 'completed' and t."ocr_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.pruneFailed
delete from "pages" as t where t."id" in (select t."id" from "pages" as t where t."ocr_status" = 'failed' and not (t."ocr_retry_count" < t."max_retries") and t."ocr_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."ocr_status", t."ocr_completed_at" limit ?3) and t."ocr_status" = 'failed' and not (t."ocr_retry_count" < t."max_retries") and t."ocr_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.completeWithResults
update "pages" as t set "ocr_status" = 'completed', "ocr_last_heartbeat" = null, "ocr_completed_at" = ?1, "ocr_error" = null, "updated_at" = ?1, "page_file_path" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."ocr_lease_token" = (batch.value ->> 1) and coalesce(t."ocr_status" = 'processing', false) returning "id" as q_key, "ocr_status" as q_status, "document_id" as q_parent;

-- pages.ocr.parent0.lock
select p."id" from "documents" as p where p."id" in (select value from json_each(?1)) order by p."id";

-- pages.ocr.parent0.derive
select p."id" as key, p."ocr_status" as status, case when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'processing') then 'processing' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'pending') then 'pending' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'failed') then 'failed' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'completed') then 'completed' end as derived, null as parent from "documents" as p where p."id" in (select value from json_each(?1));

-- pages.ocr.parent0.processing
update "documents" as p set "ocr_status" = 'processing', "ocr_started_at" = coalesce(p."ocr_started_at", ?1), "ocr_completed_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.ocr.parent0.pending
update "documents" as p set "ocr_status" = 'pending', "ocr_completed_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.ocr.parent0.failed
update "documents" as p set "ocr_status" = 'failed', "ocr_completed_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.ocr.parent0.completed
update "documents" as p set "ocr_status" = 'completed', "ocr_completed_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.ocr.parent0.page
select p."id" as key, p."ocr_status" as status, case when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'processing') then 'processing' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'pending') then 'pending' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'failed') then 'failed' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."ocr_status" = 'completed') then 'completed' end as derived, null as parent from "documents" as p where (?1 is null or p."id" > ?1) order by p."id" limit ?2;

-- pages.vector.claim
select t."id" as q_key, t."vector_lease_token" + 1 as q_token, t."vector_retry_count" + 1 as q_attempt, t."max_retries" as q_attempts_max, t."document_id" as q_parent, t."page_number", t."document_id" from "pages" as t indexed by "pages_pages_vector_ready_8a351c" where t."vector_status" in ('pending', 'failed') and t."vector_run_after" is null and t."vector_retry_count" < t."max_retries" and t."ocr_status" = 'completed' order by (case t."vector_status" when 'failed' then 0 else 1 end), t."vector_retry_count", t."created_at", t."id" limit ?1;

-- pages.vector.mark
update "pages" as t set "vector_status" = 'processing', "vector_lease_token" = t."vector_lease_token" + 1, "vector_last_heartbeat" = case when ?3 > 0 then ?1 end, "vector_worker_id" = ?2, "vector_started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- pages.vector.extend
update "pages" as t set "vector_last_heartbeat" = case when ?2 > 0 then ?1 end, "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."vector_lease_token" = batch.value and coalesce(t."vector_status" = 'processing', false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.complete
update "pages" as t set "vector_status" = 'completed', "vector_last_heartbeat" = null, "vector_completed_at" = ?1, "vector_error" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."vector_lease_token" = batch.value and coalesce(t."vector_status" = 'processing', false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.fail
update "pages" as t set "vector_status" = 'failed', "vector_retry_count" = case when ((batch.value ->> 4) or (t."vector_retry_count" + 1) >= t."max_retries") then max((t."vector_retry_count" + 1), t."max_retries") else (t."vector_retry_count" + 1) end, "vector_run_after" = case when ((batch.value ->> 4) or (t."vector_retry_count" + 1) >= t."max_retries") or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "vector_error" = (batch.value ->> 3), "vector_last_heartbeat" = null, "vector_completed_at" = case when ((batch.value ->> 4) or (t."vector_retry_count" + 1) >= t."max_retries") then ?1 end, "vector_worker_id" = case when not ((batch.value ->> 4) or (t."vector_retry_count" + 1) >= t."max_retries") then null else t."vector_worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."vector_lease_token" = (batch.value ->> 1) and coalesce(t."vector_status" = 'processing', false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.release
update "pages" as t set "vector_status" = 'pending', "vector_run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "vector_last_heartbeat" = null, "vector_worker_id" = null, "vector_started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."vector_lease_token" = (batch.value ->> 1) and coalesce(t."vector_status" = 'processing', false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.expire
update "pages" as t set "vector_last_heartbeat" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."vector_status" = 'processing' and t."vector_worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- pages.vector.rescue
update "pages" as t set "vector_status" = case when ((t."vector_retry_count" + 1) >= t."max_retries") then 'failed' when true then 'pending' else t."vector_status" end, "vector_retry_count" = (t."vector_retry_count" + 1), "vector_lease_token" = t."vector_lease_token" + 1, "vector_run_after" = null, "vector_error" = 'worker ' || coalesce(t."vector_worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."vector_retry_count" + 1) || ' of ' || t."max_retries" || ')', "vector_last_heartbeat" = null, "vector_completed_at" = case when ((t."vector_retry_count" + 1) >= t."max_retries") then ?1 end, "vector_worker_id" = case when not ((t."vector_retry_count" + 1) >= t."max_retries") then null else t."vector_worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "pages" as t indexed by "pages_pages_vector_lease_d5c0c6" where t."vector_status" = 'processing' and t."vector_last_heartbeat" < strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-60000 / 1000.0) || ' seconds') order by t."vector_last_heartbeat" limit ?2) and coalesce(t."vector_status" = 'processing' and t."vector_last_heartbeat" < strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-60000 / 1000.0) || ' seconds'), false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.promote
update "pages" as t set "vector_run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "pages" as t indexed by "pages_pages_vector_delayed_a8331b" where t."vector_status" in ('pending', 'failed') and t."vector_run_after" is not null and t."vector_run_after" <= ?1 order by t."vector_run_after" limit ?2) and coalesce(t."vector_status" in ('pending', 'failed') and t."vector_run_after" is not null and t."vector_run_after" <= ?1, false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.nextDue
select (julianday(t."vector_run_after") - julianday(?1)) * 86400000 as wait_ms from "pages" as t indexed by "pages_pages_vector_delayed_a8331b" where t."vector_status" in ('pending', 'failed') and t."vector_run_after" is not null order by t."vector_run_after" limit 1;

-- pages.vector.lookUp
select t."id" as q_key, t."vector_status" as q_status, t."vector_lease_token" as q_token, t."vector_retry_count" as q_attempt, t."max_retries" as q_attempts_max from "pages" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- pages.vector.cancel
delete from "pages" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."vector_status" in ('pending', 'failed') and t."vector_retry_count" < t."max_retries") or (t."vector_status" = 'processing') or (t."vector_status" = 'pending' and not (t."vector_retry_count" < t."max_retries"))), false) and ?1 is not null returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.retry
update "pages" as t set "vector_status" = 'pending', "vector_lease_token" = t."vector_lease_token" + 1, "vector_retry_count" = 0, "vector_run_after" = null, "vector_last_heartbeat" = null, "vector_worker_id" = null, "vector_started_at" = null, "vector_completed_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."vector_status" = 'failed' and not (t."vector_retry_count" < t."max_retries")) or (t."vector_status" in ('pending', 'failed') and t."vector_run_after" is not null) or (t."vector_status" = 'pending' and not (t."vector_retry_count" < t."max_retries")) or (t."vector_status" = 'completed' and ?3)), false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.pruneDone
delete from "pages" as t where t."id" in (select t."id" from "pages" as t where t."vector_status" = 'completed' and t."vector_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."vector_status", t."vector_completed_at" limit ?3) and t."vector_status" = 'completed' and t."vector_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.pruneFailed
delete from "pages" as t where t."id" in (select t."id" from "pages" as t where t."vector_status" = 'failed' and not (t."vector_retry_count" < t."max_retries") and t."vector_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."vector_status", t."vector_completed_at" limit ?3) and t."vector_status" = 'failed' and not (t."vector_retry_count" < t."max_retries") and t."vector_completed_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.completeWithResults
update "pages" as t set "vector_status" = 'completed', "vector_last_heartbeat" = null, "vector_completed_at" = ?1, "vector_error" = null, "updated_at" = ?1, "page_file_path" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."vector_lease_token" = (batch.value ->> 1) and coalesce(t."vector_status" = 'processing', false) returning "id" as q_key, "vector_status" as q_status, "document_id" as q_parent;

-- pages.vector.parent0.lock
select p."id" from "documents" as p where p."id" in (select value from json_each(?1)) order by p."id";

-- pages.vector.parent0.derive
select p."id" as key, p."vector_status" as status, case when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'processing') then 'processing' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'pending') then 'pending' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'failed') then 'failed' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'completed') then 'completed' end as derived, null as parent from "documents" as p where p."id" in (select value from json_each(?1));

-- pages.vector.parent0.processing
update "documents" as p set "vector_status" = 'processing', "vector_started_at" = coalesce(p."vector_started_at", ?1), "vector_completed_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.vector.parent0.pending
update "documents" as p set "vector_status" = 'pending', "vector_completed_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.vector.parent0.failed
update "documents" as p set "vector_status" = 'failed', "vector_completed_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.vector.parent0.completed
update "documents" as p set "vector_status" = 'completed', "vector_completed_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- pages.vector.parent0.page
select p."id" as key, p."vector_status" as status, case when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'processing') then 'processing' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'pending') then 'pending' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'failed') then 'failed' when exists (select 1 from "pages" as c where c."document_id" = p."id" and c."vector_status" = 'completed') then 'completed' end as derived, null as parent from "documents" as p where (?1 is null or p."id" > ?1) order by p."id" limit ?2;

-- chunks.claim
select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."section_id" as q_parent, t."position" from "chunks" as t indexed by "chunks_ready_e23f13" where t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 order by t."created_at", t."id" limit ?1;

-- chunks.mark
update "chunks" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?3 / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- chunks.extend
update "chunks" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?2 / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.complete
update "chunks" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.fail
update "chunks" as t set "status" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "run_after" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.release
update "chunks" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.expire
update "chunks" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- chunks.rescue
update "chunks" as t set "status" = case when ((t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."attempts" + 1) || ' of ' || 3 || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "chunks" as t indexed by "chunks_lease_b4cc08" where t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.promote
update "chunks" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "chunks" as t indexed by "chunks_delayed_c8235d" where t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "chunks" as t indexed by "chunks_delayed_c8235d" where t."status" = 'pending' and t."run_after" is not null order by t."run_after" limit 1;

-- chunks.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, 3 as q_attempts_max from "chunks" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- chunks.cancel
delete from "chunks" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'pending' and t."attempts" < 3) or (t."status" = 'processing') or (t."status" = 'pending' and not (t."attempts" < 3))), false) and ?1 is not null returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.retry
update "chunks" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'failed') or (t."status" = 'pending' and t."run_after" is not null) or (t."status" = 'pending' and not (t."attempts" < 3)) or (t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.pruneDone
delete from "chunks" as t where t."id" in (select t."id" from "chunks" as t where t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.pruneFailed
delete from "chunks" as t where t."id" in (select t."id" from "chunks" as t where t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.completeWithResults
update "chunks" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "section_id" as q_parent;

-- chunks.parent0.lock
select p."id" from "sections" as p where p."id" in (select value from json_each(?1)) order by p."id";

-- chunks.parent0.derive
select p."id" as key, p."status" as status, case when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'processing') then 'processing' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'pending') then 'pending' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'failed') then 'failed' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'completed') then 'completed' end as derived, p."book_id" as parent from "sections" as p where p."id" in (select value from json_each(?1));

-- chunks.parent0.processing
update "sections" as p set "status" = 'processing' where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent0.pending
update "sections" as p set "status" = 'pending' where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent0.failed
update "sections" as p set "status" = 'failed' where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent0.completed
update "sections" as p set "status" = 'completed' where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent0.page
select p."id" as key, p."status" as status, case when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'processing') then 'processing' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'pending') then 'pending' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'failed') then 'failed' when exists (select 1 from "chunks" as c where c."section_id" = p."id" and c."status" = 'completed') then 'completed' end as derived, p."book_id" as parent from "sections" as p where (?1 is null or p."id" > ?1) order by p."id" limit ?2;

-- chunks.parent1.lock
select p."id" from "books" as p where p."id" in (select value from json_each(?1)) order by p."id";

-- chunks.parent1.derive
select p."id" as key, p."status" as status, case when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'processing') then 'processing' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'pending') then 'pending' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'failed') then 'failed' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'completed') then 'completed' end as derived, null as parent from "books" as p where p."id" in (select value from json_each(?1));

-- chunks.parent1.processing
update "books" as p set "status" = 'processing', "finished_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent1.pending
update "books" as p set "status" = 'pending', "finished_at" = null where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent1.failed
update "books" as p set "status" = 'failed', "finished_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent1.completed
update "books" as p set "status" = 'completed', "finished_at" = ?1 where p."id" in (select value from json_each(?2)) and ?1 is not null;

-- chunks.parent1.page
select p."id" as key, p."status" as status, case when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'processing') then 'processing' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'pending') then 'pending' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'failed') then 'failed' when exists (select 1 from "sections" as c where c."book_id" = p."id" and c."status" = 'completed') then 'completed' end as derived, null as parent from "books" as p where (?1 is null or p."id" > ?1) order by p."id" limit ?2;

-- steps.claim
select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."entity_type", t."entity_id", t."position" from "steps" as t indexed by "steps_ready_145073" where t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."has_turn" = true order by t."created_at", t."id" limit ?1;

-- steps.mark
update "steps" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?3 / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- steps.extend
update "steps" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?2 / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.complete
update "steps" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.complete
update "steps" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false);

-- steps.fail
update "steps" as t set "status" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "run_after" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then null else t."worker_id" end, "has_turn" = (not ((batch.value ->> 4) or (t."attempts" + 1) >= 3)), "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.release
update "steps" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.expire
update "steps" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- steps.rescue
update "steps" as t set "status" = case when ((t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."attempts" + 1) || ' of ' || 3 || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((t."attempts" + 1) >= 3) then null else t."worker_id" end, "has_turn" = (not ((t."attempts" + 1) >= 3)), "updated_at" = ?1 where t."id" in (select t."id" from "steps" as t indexed by "steps_lease_cb3be6" where t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.promote
update "steps" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "steps" as t indexed by "steps_delayed_54ca01" where t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "steps" as t indexed by "steps_delayed_54ca01" where t."status" = 'pending' and t."run_after" is not null order by t."run_after" limit 1;

-- steps.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, 3 as q_attempts_max from "steps" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- steps.cancel
delete from "steps" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'pending' and t."attempts" < 3) or (t."status" = 'processing') or (t."status" = 'pending' and not (t."attempts" < 3))), false) and ?1 is not null returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.retry
update "steps" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'failed') or (t."status" = 'pending' and t."run_after" is not null) or (t."status" = 'pending' and not (t."attempts" < 3)) or (t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.pruneDone
delete from "steps" as t where t."id" in (select t."id" from "steps" as t where t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.pruneFailed
delete from "steps" as t where t."id" in (select t."id" from "steps" as t where t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.completeWithResults
update "steps" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- steps.completeWithResults
update "steps" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false);

-- steps.anyBehind
select 1 as found from "steps" as w indexed by "steps_behind_d60f74" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1;

-- steps.groupsOf
select t."entity_type" as q_group_0, t."entity_id" as q_group_1 from "steps" as t where t."id" in (select value from json_each(?1));

-- steps.pass
update "steps" as t set "has_turn" = true where t."id" in (select (select w."id" from "steps" as w indexed by "steps_behind_d60f74" where w."entity_type" = r.value ->> '$."entity_type"' and w."entity_id" = r.value ->> '$."entity_id"' and w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."created_at", w."id" limit 1) from json_each(?1) as r where (select 1 from "steps" as h indexed by "steps_turn_0f54e7" where h."entity_type" = r.value ->> '$."entity_type"' and h."entity_id" = r.value ->> '$."entity_id"' and h."has_turn" = true limit 1) is null) and coalesce(t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."has_turn" = false, false) returning "id" as q_key;

-- steps.stranded
with recursive heads(head) as (select * from (select w."id" as head from "steps" as w indexed by "steps_behind_d60f74" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1) as f union all select (select w."id" from "steps" as w indexed by "steps_behind_d60f74" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false and (w."entity_type", w."entity_id") > (+c."entity_type", +c."entity_id") order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1) from heads join "steps" as c on c."id" = heads.head where heads.head is not null) select t."entity_type" as q_group_0, t."entity_id" as q_group_1 from heads cross join "steps" as t on t."id" = heads.head where not exists (select 1 from "steps" as h indexed by "steps_turn_0f54e7" where h."entity_type" = t."entity_type" and h."entity_id" = t."entity_id" and h."has_turn" = true);

-- strides.claim
select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."entity_type", t."entity_id", t."position" from "strides" as t indexed by "strides_ready_0d9e1d" where t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."has_turn" = true order by t."created_at", t."id" limit ?1;

-- strides.mark
update "strides" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?3 / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- strides.extend
update "strides" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?2 / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.complete
update "strides" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.complete
update "strides" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false);

-- strides.fail
update "strides" as t set "status" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "run_after" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then null else t."worker_id" end, "has_turn" = (not ((batch.value ->> 4) or (t."attempts" + 1) >= 3)), "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.release
update "strides" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.expire
update "strides" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- strides.rescue
update "strides" as t set "status" = case when ((t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."attempts" + 1) || ' of ' || 3 || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((t."attempts" + 1) >= 3) then null else t."worker_id" end, "has_turn" = (not ((t."attempts" + 1) >= 3)), "updated_at" = ?1 where t."id" in (select t."id" from "strides" as t indexed by "strides_running" where t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.promote
update "strides" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "strides" as t indexed by "strides_delayed_952714" where t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "strides" as t indexed by "strides_delayed_952714" where t."status" = 'pending' and t."run_after" is not null order by t."run_after" limit 1;

-- strides.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, 3 as q_attempts_max from "strides" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- strides.cancel
delete from "strides" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'pending' and t."attempts" < 3) or (t."status" = 'processing') or (t."status" = 'pending' and not (t."attempts" < 3))), false) and ?1 is not null returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.retry
update "strides" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'failed') or (t."status" = 'pending' and t."run_after" is not null) or (t."status" = 'pending' and not (t."attempts" < 3)) or (t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.pruneDone
delete from "strides" as t where t."id" in (select t."id" from "strides" as t where t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.pruneFailed
delete from "strides" as t where t."id" in (select t."id" from "strides" as t where t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.completeWithResults
update "strides" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status, "entity_type" as q_group_0, "entity_id" as q_group_1;

-- strides.completeWithResults
update "strides" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "has_turn" = false, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false);

-- strides.anyBehind
select 1 as found from "strides" as w indexed by "strides_behind_34829e" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1;

-- strides.groupsOf
select t."entity_type" as q_group_0, t."entity_id" as q_group_1 from "strides" as t where t."id" in (select value from json_each(?1));

-- strides.pass
update "strides" as t set "has_turn" = true where t."id" in (select (select w."id" from "strides" as w indexed by "strides_behind_34829e" where w."entity_type" = r.value ->> '$."entity_type"' and w."entity_id" = r.value ->> '$."entity_id"' and w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."created_at", w."id" limit 1) from json_each(?1) as r where (select 1 from "strides" as h indexed by "strides_entity" where h."entity_type" = r.value ->> '$."entity_type"' and h."entity_id" = r.value ->> '$."entity_id"' and h."has_turn" = true limit 1) is null) and coalesce(t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."has_turn" = false, false) returning "id" as q_key;

-- strides.stranded
with recursive heads(head) as (select * from (select w."id" as head from "strides" as w indexed by "strides_behind_34829e" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1) as f union all select (select w."id" from "strides" as w indexed by "strides_behind_34829e" where w."status" = 'pending' and w."run_after" is null and w."attempts" < 3 and w."has_turn" = false and (w."entity_type", w."entity_id") > (+c."entity_type", +c."entity_id") order by w."entity_type", w."entity_id", w."created_at", w."id" limit 1) from heads join "strides" as c on c."id" = heads.head where heads.head is not null) select t."entity_type" as q_group_0, t."entity_id" as q_group_1 from heads cross join "strides" as t on t."id" = heads.head where not exists (select 1 from "strides" as h indexed by "strides_entity" where h."entity_type" = t."entity_type" and h."entity_id" = t."entity_id" and h."has_turn" = true);

-- errands.claim
select * from (select * from (select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."place", t."position", t."priority" as q_order_0, t."created_at" as q_order_1, t."id" as q_order_2 from "errands" as t indexed by "errands_ready_280fb2" where t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."place" = 'here' order by t."priority" desc, t."created_at", t."id" limit ?1) as line union all select * from (select t."id" as q_key, t."lease_token" + 1 as q_token, t."attempts" + 1 as q_attempt, 3 as q_attempts_max, t."place", t."position", t."priority" as q_order_0, t."created_at" as q_order_1, t."id" as q_order_2 from "errands" as t indexed by "errands_ready_280fb2" where t."status" = 'pending' and t."run_after" is null and t."attempts" < 3 and t."place" = '' order by t."priority" desc, t."created_at", t."id" limit ?1) as line) as lines order by q_order_0 desc, q_order_1, q_order_2 limit ?1;

-- errands.mark
update "errands" as t set "status" = 'processing', "lease_token" = t."lease_token" + 1, "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?3 / 1000.0) || ' seconds'), "worker_id" = ?2, "started_at" = ?1, "updated_at" = ?1 where t."id" in (select value from json_each(?4));

-- errands.extend
update "errands" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (?2 / 1000.0) || ' seconds'), "updated_at" = ?1 from json_each(?3) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- errands.complete
update "errands" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- errands.complete
update "errands" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.key and t."lease_token" = batch.value and coalesce(t."status" = 'processing', false);

-- errands.fail
update "errands" as t set "status" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "run_after" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) or (batch.value ->> 2) <= 0 then null else strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "error_message" = (batch.value ->> 3), "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((batch.value ->> 4) or (t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- errands.release
update "errands" as t set "status" = 'pending', "run_after" = case when (batch.value ->> 2) > 0 then strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ((batch.value ->> 2) / 1000.0) || ' seconds') end, "lease_until" = null, "worker_id" = null, "started_at" = null, "updated_at" = ?1 from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- errands.expire
update "errands" as t set "lease_until" = strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-120000 / 1000.0) || ' seconds'), "updated_at" = ?1 where t."status" = 'processing' and t."worker_id" in (select value from json_each(?2)) returning "id" as q_key;

-- errands.rescue
update "errands" as t set "status" = case when ((t."attempts" + 1) >= 3) then 'failed' when true then 'pending' else t."status" end, "attempts" = (t."attempts" + 1), "lease_token" = t."lease_token" + 1, "run_after" = null, "error_message" = 'worker ' || coalesce(t."worker_id", '?') || ' stopped renewing its lease (attempt ' || (t."attempts" + 1) || ' of ' || 3 || ')', "last_error_at" = ?1, "lease_until" = null, "finished_at" = case when ((t."attempts" + 1) >= 3) then ?1 end, "worker_id" = case when not ((t."attempts" + 1) >= 3) then null else t."worker_id" end, "updated_at" = ?1 where t."id" in (select t."id" from "errands" as t indexed by "errands_lease_7cb06e" where t."status" = 'processing' and t."lease_until" < ?1 order by t."lease_until" limit ?2) and coalesce(t."status" = 'processing' and t."lease_until" < ?1, false) returning "id" as q_key, "status" as q_status;

-- errands.promote
update "errands" as t set "run_after" = null, "updated_at" = ?1 where t."id" in (select t."id" from "errands" as t indexed by "errands_delayed_15a138" where t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1 order by t."run_after" limit ?2) and coalesce(t."status" = 'pending' and t."run_after" is not null and t."run_after" <= ?1, false) returning "id" as q_key, "status" as q_status;

-- errands.nextDue
select (julianday(t."run_after") - julianday(?1)) * 86400000 as wait_ms from "errands" as t indexed by "errands_delayed_15a138" where t."status" = 'pending' and t."run_after" is not null order by t."run_after" limit 1;

-- errands.lookUp
select t."id" as q_key, t."status" as q_status, t."lease_token" as q_token, t."attempts" as q_attempt, 3 as q_attempts_max from "errands" as t where t."id" in (select value from json_each(?1)) and coalesce(true, false);

-- errands.cancel
delete from "errands" as t where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'pending' and t."attempts" < 3) or (t."status" = 'processing') or (t."status" = 'pending' and not (t."attempts" < 3))), false) and ?1 is not null returning "id" as q_key, "status" as q_status;

-- errands.retry
update "errands" as t set "status" = 'pending', "lease_token" = t."lease_token" + 1, "attempts" = 0, "run_after" = null, "lease_until" = null, "worker_id" = null, "started_at" = null, "finished_at" = null, "updated_at" = ?1 where t."id" in (select value from json_each(?2)) and coalesce(true, false) and coalesce(((t."status" = 'failed') or (t."status" = 'pending' and t."run_after" is not null) or (t."status" = 'pending' and not (t."attempts" < 3)) or (t."status" = 'completed' and ?3)), false) returning "id" as q_key, "status" as q_status;

-- errands.pruneDone
delete from "errands" as t where t."id" in (select t."id" from "errands" as t where t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'completed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- errands.pruneFailed
delete from "errands" as t where t."id" in (select t."id" from "errands" as t where t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') order by t."status", t."finished_at" limit ?3) and t."status" = 'failed' and t."finished_at" <= strftime('%Y-%m-%dT%H:%M:%fZ', ?1, (-?2 / 1000.0) || ' seconds') returning "id" as q_key, "status" as q_status;

-- errands.completeWithResults
update "errands" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false) returning "id" as q_key, "status" as q_status;

-- errands.completeWithResults
update "errands" as t set "status" = 'completed', "lease_until" = null, "finished_at" = ?1, "error_message" = null, "updated_at" = ?1, "note" = batch.value ->> '$[2]' from json_each(?2) as batch where t."id" = batch.value ->> 0 and t."lease_token" = (batch.value ->> 1) and coalesce(t."status" = 'processing', false);
