-- Jobs as callers see them: stored, looked up, cancelled, rescheduled, retried.
--
-- A repeated draft must not run again if its job has finished. To look each id up in every partition of the history would double the
-- price of storing it, so the look is limited to the last day; a single draft is looked up only when it is repeated, a batch only if the
-- range of its ids has any hit.
-- OFFSET 0 keeps the planner from reading a whole table in order to hash it.

-- name: add_job
-- $1..$18 the draft, $19 the payload of a notification, or NULL. `soon`: listeners want to know of it. Without ON CONFLICT, which costs a
-- twentieth of storing it.
INSERT INTO duetime.jobs ({draft})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
RETURNING due_at < clock_timestamp() + interval '2 seconds' AS soon,
    CASE WHEN $19::text IS NOT NULL AND due_at < clock_timestamp() + interval '2 seconds' THEN pg_notify('duetime', $19) END;

-- name: add_keyed_job
-- The same with a unique key, which may be taken. Returns a row if it was stored.
INSERT INTO duetime.jobs ({draft})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT DO NOTHING
RETURNING due_at < clock_timestamp() + interval '2 seconds' AS soon,
    CASE WHEN $19::text IS NOT NULL AND due_at < clock_timestamp() + interval '2 seconds' THEN pg_notify('duetime', $19) END;

-- name: add_jobs
-- $1..$18 the drafts, column by column; $19 the names they wait for; $20, $21 the least and the greatest of their ids. Returns the ids that
-- were stored.
INSERT INTO duetime.jobs ({draft}, waits_for)
SELECT x.* FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::smallint[],
    $9::text[], $10::text[], $11::bytea[], $12::bytea[], $13::bytea[], $14::text[], $15::bytea[], $16::text[], $17::uuid[], $18::text[],
    $19::text[]) AS x(id)
WHERE CASE WHEN (SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $20::uuid AND h.id <= $21::uuid
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour'))
    THEN NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)
    ELSE true END
ON CONFLICT DO NOTHING
RETURNING id;

-- name: withdraw_finished
-- $1 ids of repeated drafts that this transaction has stored. Deletes those that had finished by then.
DELETE FROM duetime.jobs WHERE id = ANY (ARRAY(SELECT x.id FROM unnest($1::uuid[]) AS x(id)
    WHERE EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)))
RETURNING id;

-- name: any_finished
-- Whether any job with an id from $1 to $2 finished within the last day.
SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $1 AND h.id <= $2
    AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour');

-- name: holders_of_keys
-- For each draft that was not stored the id that stands for it: its own when it is known, else that of the job that holds its key.
SELECT x.id, CASE WHEN EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0)
        OR EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id OFFSET 0)
    THEN x.id ELSE (SELECT j.id FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key) END AS holder
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS x(id, tenant, unique_key);

-- name: live_jobs
-- The columns of a job in the order of its fields; to be followed by a condition.
SELECT {draft}, state, attempt, failures, losses, {progressed},
    NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at, NULL::bytea AS result, error, NULL::text AS disposition
FROM duetime.jobs;

-- name: past_jobs
SELECT {draft}, state, attempt, failures, losses, {progressed},
    started_at, finished_at, result, error, disposition
FROM duetime.history;

-- name: list_attempts
SELECT job_id, attempt, node, ending, started_at, finished_at, error, result FROM duetime.attempts WHERE job_id = $1 ORDER BY attempt, finished_at;

-- name: cancel_jobs
-- $1 tenants, $2 ids, $3 reasons. External ones are left to `settle`. `names`: permits for which a waiting job may now ask. No row for a job
-- that another transaction changed at the same time: look again.
WITH found AS MATERIALIZED (
        SELECT x.tenant, x.id, x.reason, j.tid, j.state, j.node
        FROM unnest($1::text[], $2::uuid[], $3::text[]) AS x(tenant, id, reason)
        CROSS JOIN LATERAL (SELECT j.ctid AS tid, j.state, j.node FROM duetime.jobs j WHERE j.id = x.id AND j.tenant = x.tenant LIMIT 1 FOR UPDATE) j),
    ended AS (DELETE FROM duetime.jobs WHERE ctid = ANY (ARRAY(SELECT tid FROM found WHERE state <> 'running')) RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {progressed}, error, finished_at)
        SELECT {e.draft}, 'cancelled', e.attempt, e.failures, e.losses, {e.progressed}, f.reason, clock_timestamp()
        FROM ended e JOIN found f ON f.id = e.id),
    asked AS (UPDATE duetime.jobs j SET cancel_requested = true, error = f.reason FROM found f
        WHERE j.ctid = ANY (ARRAY(SELECT tid FROM found WHERE state = 'running' AND node <> 0)) AND j.id = f.id
        RETURNING j.tenant, j.id, j.node)
SELECT tenant, id, 'cancelled' AS reply, NULL::bigint AS node, awaited, array_remove(ARRAY[CASE WHEN waits_for IS NULL THEN limit_key END,
    CASE WHEN overlap IS NOT NULL AND attempt > 0 THEN '/' || schedule_id END], NULL) AS names FROM ended
UNION ALL SELECT tenant, id, 'requested', node, false, '{}' FROM asked
UNION ALL SELECT tenant, id, 'external', NULL, false, '{}' FROM found WHERE state = 'running' AND node = 0
UNION ALL SELECT x.tenant, x.id, 'final', NULL, false, '{}' FROM unnest($1::text[], $2::uuid[]) AS x(tenant, id)
    WHERE NOT EXISTS (SELECT FROM found f WHERE f.id = x.id)
        AND EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id AND h.tenant = x.tenant OFFSET 0);

-- name: reschedule_jobs
-- $1 tenants, $2 ids, $3 due times, $4 priorities; NULL leaves a field as it is. A job that waited for a permit asks again.
UPDATE duetime.jobs j SET due_at = coalesce(x.due_at, j.due_at), priority = coalesce(x.priority, j.priority), waits_for = NULL
FROM unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::smallint[]) AS x(tenant, id, due_at, priority)
WHERE j.id = x.id AND j.tenant = x.tenant AND j.id = ANY ($2) AND j.state = 'pending' RETURNING j.tenant, j.id, j.queue, j.priority, j.due_at;

-- name: resolve_dead_jobs
-- $1 tenants, $2 ids, $3 dispositions.
UPDATE duetime.history h SET disposition = x.disposition FROM unnest($1::text[], $2::uuid[], $3::text[]) AS x(tenant, id, disposition)
WHERE h.id = x.id AND h.tenant = x.tenant AND h.id = ANY ($2)
    AND (h.state = 'dead' OR h.state = 'skipped' AND x.disposition = 'retried') AND h.disposition IS NULL RETURNING h.tenant, h.id;

-- name: reopen_dead_jobs
-- $1 ids of jobs that this transaction has resolved.
UPDATE duetime.history SET disposition = NULL WHERE id = ANY ($1::uuid[]) AND state IN ('dead', 'skipped');

-- name: retried_before
-- Whether an earlier call, whose reply was lost, retried the dead letter $2 as $3.
SELECT EXISTS (SELECT FROM duetime.history WHERE id = $2 AND tenant = $1 AND disposition = 'retried')
    AND (EXISTS (SELECT FROM duetime.jobs WHERE id = $3) OR EXISTS (SELECT FROM duetime.history WHERE id = $3));

-- name: await_job
-- $1 tenant, $2 id. Written even if it is set already: then a transaction that ends the job at the same time is waited for, and there is no
-- row. Claims pass over a row while it is written: so it does not wait for the disk, and a pending job is announced once more.
UPDATE duetime.jobs SET awaited = true WHERE tenant = $1 AND id = $2 AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING state = 'pending' AND waits_for IS NULL AS claimable, queue, priority, due_at;
