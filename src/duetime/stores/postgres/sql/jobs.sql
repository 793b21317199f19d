-- Jobs as callers see them: stored, looked up, cancelled, moved, revived.
--
-- A draft that is sent again must not run again if its job has finished meanwhile. Looking each id up in every partition of the history
-- would double the price of storing it, so the look is bounded to the last day; a single draft has it only when it is sent again, a batch
-- only if the range of its ids has any hit.
-- OFFSET 0 keeps the planner from reading a whole table in order to hash it.

-- name: add_job
-- $1..$18 the draft, $19 what to tell listeners, if anything. `soon` says whether they want to know. For one that nothing should be in the way
-- of: to be ready for that costs a twentieth of storing it.
INSERT INTO duetime.jobs ({draft})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
RETURNING due_at < clock_timestamp() + interval '2 seconds' AS soon,
    CASE WHEN $19::text IS NOT NULL AND due_at < clock_timestamp() + interval '2 seconds' THEN pg_notify('duetime', $19) END;

-- name: add_keyed_job
-- The same with a unique key, which may be taken. Answers a row if it was stored.
INSERT INTO duetime.jobs ({draft})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT DO NOTHING
RETURNING due_at < clock_timestamp() + interval '2 seconds' AS soon,
    CASE WHEN $19::text IS NOT NULL AND due_at < clock_timestamp() + interval '2 seconds' THEN pg_notify('duetime', $19) END;

-- name: add_job_again
-- The same when an earlier reply was lost: the job may have finished since.
INSERT INTO duetime.jobs ({draft})
SELECT $1::uuid, $2::text, $3::uuid, $4::text, $5::timestamptz, $6::timestamptz, $7::text, $8::smallint, $9::text,
    $10::text, $11::bytea, $12::bytea, $13::bytea, $14::text, $15::bytea, $16::text, $17::uuid, $18::text
WHERE NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = $1
    AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour')
ON CONFLICT DO NOTHING
RETURNING id, due_at < clock_timestamp() + interval '2 seconds' AS soon,
    CASE WHEN $19::text IS NOT NULL AND due_at < clock_timestamp() + interval '2 seconds' THEN pg_notify('duetime', $19) END;

-- name: add_jobs
-- $1..$18 the drafts, column by column; $19, $20 the least and the greatest of their ids. Answers the ids that were stored.
INSERT INTO duetime.jobs ({draft})
SELECT x.* FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::smallint[],
    $9::text[], $10::text[], $11::bytea[], $12::bytea[], $13::bytea[], $14::text[], $15::bytea[], $16::text[], $17::uuid[], $18::text[]) AS x(id)
WHERE CASE WHEN (SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $19::uuid AND h.id <= $20::uuid
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour'))
    THEN NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)
    ELSE true END
ON CONFLICT DO NOTHING
RETURNING id;

-- name: withdraw_finished
-- $1 ids of drafts sent again, which this very transaction has stored. Takes back those that were finished by then.
DELETE FROM duetime.jobs WHERE id = ANY (ARRAY(SELECT x.id FROM unnest($1::uuid[]) AS x(id)
    WHERE EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id
        AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)))
RETURNING id;

-- name: any_finished
-- Whether any job with an id from $1 to $2 finished within the last day.
SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $1 AND h.id <= $2
    AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour');

-- name: resolve_jobs
-- Which id answers for each draft that was not stored: its own when it is known, else that of the job which holds its key.
SELECT x.id, CASE WHEN EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0)
        OR EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id OFFSET 0)
    THEN x.id ELSE (SELECT j.id FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key) END AS answer
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS x(id, tenant, unique_key);

-- name: live_jobs
-- The columns of a job in the order of its fields; to be followed by a condition.
SELECT {draft}, state, attempt, failures, losses, {lived},
    NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at, NULL::bytea AS result, error, NULL::text AS disposition
FROM duetime.jobs;

-- name: past_jobs
SELECT {draft}, state, attempt, failures, losses, {lived},
    started_at, finished_at, result, error, disposition
FROM duetime.history;

-- name: list_attempts
SELECT job_id, attempt, node, ending, started_at, finished_at, error FROM duetime.attempts WHERE job_id = $1 ORDER BY attempt, finished_at;

-- name: count_jobs
SELECT queue, count(*) FILTER (WHERE state <> 'running') AS pending,
    count(*) FILTER (WHERE state <> 'running' AND due_at <= statement_timestamp()) AS due, count(*) FILTER (WHERE state = 'running') AS running
FROM duetime.jobs GROUP BY queue ORDER BY queue;

-- name: cancel_jobs
-- $1 tenants, $2 ids, $3 reasons. Those that were handed over are left to `settle`. No row for one: somebody changed that job in the same
-- moment, so look again.
WITH found AS MATERIALIZED (
        SELECT x.tenant, x.id, x.reason, j.tid, j.state, j.node
        FROM unnest($1::text[], $2::uuid[], $3::text[]) AS x(tenant, id, reason)
        CROSS JOIN LATERAL (SELECT j.ctid AS tid, j.state, j.node FROM duetime.jobs j WHERE j.id = x.id AND j.tenant = x.tenant LIMIT 1 FOR UPDATE) j),
    ended AS (DELETE FROM duetime.jobs WHERE ctid = ANY (ARRAY(SELECT tid FROM found WHERE state <> 'running')) RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {lived}, error, finished_at)
        SELECT {e.draft}, 'cancelled', e.attempt, e.failures, e.losses, {e.lived}, f.reason, clock_timestamp()
        FROM ended e JOIN found f ON f.id = e.id),
    asked AS (UPDATE duetime.jobs SET cancel_requested = true
        WHERE ctid = ANY (ARRAY(SELECT tid FROM found WHERE state = 'running' AND node <> 0)) RETURNING tenant, id, node)
SELECT tenant, id, 'cancelled' AS reply, NULL::bigint AS node, awaited FROM ended
UNION ALL SELECT tenant, id, 'requested', node, false FROM asked
UNION ALL SELECT tenant, id, 'outside', NULL, false FROM found WHERE state = 'running' AND node = 0
UNION ALL SELECT x.tenant, x.id, 'final', NULL, false FROM unnest($1::text[], $2::uuid[]) AS x(tenant, id)
    WHERE NOT EXISTS (SELECT FROM found f WHERE f.id = x.id)
        AND EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id AND h.tenant = x.tenant OFFSET 0);

-- name: change_jobs
-- $1 tenants, $2 ids, $3 due times, $4 priorities; NULL leaves what is there.
UPDATE duetime.jobs j SET due_at = coalesce(x.due_at, j.due_at), priority = coalesce(x.priority, j.priority)
FROM unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::smallint[]) AS x(tenant, id, due_at, priority)
WHERE j.id = x.id AND j.tenant = x.tenant AND j.id = ANY ($2) AND j.state = 'pending' RETURNING j.tenant, j.id, j.queue, j.priority, j.due_at;

-- name: dispose_jobs
-- $1 tenants, $2 ids, $3 what became of the dead letters.
UPDATE duetime.history h SET disposition = x.disposition FROM unnest($1::text[], $2::uuid[], $3::text[]) AS x(tenant, id, disposition)
WHERE h.id = x.id AND h.tenant = x.tenant AND h.id = ANY ($2) AND h.state = 'dead' AND h.disposition IS NULL RETURNING h.tenant, h.id;

-- name: undispose_jobs
-- $1 ids of dead letters which this very transaction has disposed of.
UPDATE duetime.history SET disposition = NULL WHERE id = ANY ($1::uuid[]) AND state = 'dead';

-- name: revived_before
-- Whether the dead letter $2 was revived as $3 by an earlier call whose reply was lost.
SELECT EXISTS (SELECT FROM duetime.history WHERE id = $2 AND tenant = $1 AND disposition = 'retried')
    AND (EXISTS (SELECT FROM duetime.jobs WHERE id = $3) OR EXISTS (SELECT FROM duetime.history WHERE id = $3));
