-- SQLite before 3.47 reads no schema in which `raise` is given more than a text that stands there: shells and other
-- programs could not look into the database at all. Otherwise as before.
drop trigger task_queue_transition;
-- keep
create trigger task_queue_transition before update of status on task_queue
when old.status <> new.status and not (
    (old.status = 'PENDING' and new.status = 'IN_PROGRESS') or
    (old.status = 'IN_PROGRESS' and new.status in ('COMPLETED', 'FAILED', 'PENDING')) or
    (old.status = 'FAILED' and new.status = 'PENDING')
) and new.status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED')
begin
    select case old.status || ' → ' || new.status
        when 'PENDING → COMPLETED' then raise(abort, 'invalid status transition: PENDING → COMPLETED')
        when 'PENDING → FAILED' then raise(abort, 'invalid status transition: PENDING → FAILED')
        when 'COMPLETED → PENDING' then raise(abort, 'invalid status transition: COMPLETED → PENDING')
        when 'COMPLETED → IN_PROGRESS' then raise(abort, 'invalid status transition: COMPLETED → IN_PROGRESS')
        when 'COMPLETED → FAILED' then raise(abort, 'invalid status transition: COMPLETED → FAILED')
        when 'FAILED → IN_PROGRESS' then raise(abort, 'invalid status transition: FAILED → IN_PROGRESS')
        when 'FAILED → COMPLETED' then raise(abort, 'invalid status transition: FAILED → COMPLETED')
        else raise(abort, 'invalid status transition')
    end;
end;
-- end

drop trigger task_queue_planner_exists;
-- keep
create trigger task_queue_planner_exists before insert on task_queue
when new.entity_type = 'planner' and new.entity_id is not null and not exists (select 1 from planners where planner_id = new.entity_id)
begin
    select raise(abort, 'there is no planner with the entity_id of this task');
end;
-- end

drop trigger task_queue_worker_exists;
-- keep
create trigger task_queue_worker_exists before insert on task_queue
when new.entity_type = 'worker' and new.entity_id is not null and not exists (select 1 from workers where worker_id = new.entity_id)
begin
    select raise(abort, 'there is no worker with the entity_id of this task');
end;
-- end
