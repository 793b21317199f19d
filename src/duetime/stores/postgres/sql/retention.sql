-- Retention, and storage for the days ahead.

-- name: add_days
SELECT duetime.add_days($1, $2);

-- name: drop_days
SELECT duetime.drop_days($1, $2);

-- name: prune_jobs
-- $1 horizon, $2 how many at most, $3 a target, or NULL for all. Whole days are dropped; this is for the day of the horizon, and for targets
-- with a shorter retention. Without an index by target: it would cost every job that finishes.
WITH old AS MATERIALIZED (SELECT id FROM duetime.history WHERE finished_at < $1 AND ($3::text IS NULL OR target = $3) LIMIT $2),
    attempts AS (DELETE FROM duetime.attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    markers AS (DELETE FROM duetime.once_markers WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    deleted AS (DELETE FROM duetime.history WHERE id = ANY (ARRAY(SELECT id FROM old)) AND finished_at < $1 RETURNING id)
SELECT count(*) FROM deleted;

-- name: forget_jobs
-- $1 ids of finished jobs.
WITH old AS MATERIALIZED (SELECT id FROM duetime.history WHERE id = ANY ($1::uuid[])),
    attempts AS (DELETE FROM duetime.attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    markers AS (DELETE FROM duetime.once_markers WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    deleted AS (DELETE FROM duetime.history WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id)
SELECT count(*) FROM deleted;

-- name: prune_once_markers
-- Of jobs that were dropped with their whole day.
DELETE FROM duetime.once_markers WHERE ctid = ANY (ARRAY(
    SELECT m.ctid FROM duetime.once_markers m WHERE m.taken_at < $1
        AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = m.job_id OFFSET 0)
        AND NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = m.job_id OFFSET 0)
    LIMIT $2));

-- name: prune_limit_keys
-- Those with nothing spent, running or waiting.
DELETE FROM duetime.limit_keys WHERE name = ANY (ARRAY(
    SELECT k.name FROM duetime.limit_keys k WHERE k.spent_until < duetime.micros(clock_timestamp())
        AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.waits_for = k.name OFFSET 0)
        AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.limit_key = k.name AND j.limit_key IS NOT NULL AND j.state = 'running' OFFSET 0)
    LIMIT $1 FOR UPDATE SKIP LOCKED));

-- name: clear_lowered
-- Limits that were lowered and of which no key has more running jobs than allowed any more.
UPDATE duetime.limits l SET lowered = false WHERE l.lowered AND NOT EXISTS (
    SELECT FROM duetime.jobs j WHERE j.limit_key IS NOT NULL AND j.state = 'running' AND j.target = l.target
    GROUP BY j.limit_key HAVING count(DISTINCT j.permit) > l.max_running OFFSET 0);

-- name: prune_nodes
DELETE FROM duetime.nodes n WHERE n.dead AND n.lease_until < $1 AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.node = n.id OFFSET 0);

-- name: prune_versions
-- Of schedules that were removed.
DELETE FROM duetime.schedule_versions v WHERE v.at < $1 AND NOT EXISTS (SELECT FROM duetime.schedules s WHERE s.id = v.id OFFSET 0);

-- name: prune_records
DELETE FROM duetime.records WHERE expires_at <= clock_timestamp();
