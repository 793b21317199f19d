-- Unique jobs: the earlier job that stands for a new one.

-- name: known_job
-- Whether this id was stored before, and whether another job was replaced by it.
SELECT EXISTS (SELECT FROM duetime.history h WHERE h.tenant = $2 AND h.unique_key = $3 AND h.error = $4) AS replaced
WHERE EXISTS (SELECT FROM duetime.jobs WHERE id = $1) OR EXISTS (SELECT FROM duetime.history WHERE id = $1);

-- name: holder
-- The live job with this key, and whether it matches the rule: $1 tenant, $2 key, $3 states, $4 period in microseconds or NULL. Locked, so
-- that a decision about it holds until the transaction ends.
SELECT id, state, queue, priority,
    state = ANY ($3::text[]) AND ($4::bigint IS NULL OR created_at >= clock_timestamp() - $4::bigint * interval '1 microsecond') AS matches
FROM duetime.jobs WHERE tenant = $1 AND unique_key = $2 FOR UPDATE;

-- name: finished_holder
-- The latest finished job with this key that matches the rule; the parameters as above.
SELECT id FROM duetime.history
WHERE tenant = $1 AND unique_key = $2 AND state = ANY ($3::text[])
    AND ($4::bigint IS NULL OR created_at >= clock_timestamp() - $4::bigint * interval '1 microsecond')
ORDER BY created_at DESC LIMIT 1;

-- name: drop_key
UPDATE duetime.jobs SET unique_key = NULL WHERE id = $1;

-- name: reschedule_holder
UPDATE duetime.jobs SET due_at = $2, waits_for = NULL WHERE id = $1;

-- name: replace_holder
-- $1 the pending job, $2 why it ends.
WITH ended AS (DELETE FROM duetime.jobs WHERE id = $1 RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {progressed}, error, finished_at)
        SELECT {draft}, 'cancelled', attempt, failures, losses, {progressed}, $2::text, clock_timestamp() FROM ended)
SELECT awaited FROM ended;

-- name: delete_draft
-- Delete the job that this transaction has stored.
DELETE FROM duetime.jobs WHERE id = $1;
