-- Unique jobs: which earlier one answers for a newcomer.

-- name: known_job
-- Whether this id was stored before, and whether another job was replaced by it.
SELECT EXISTS (SELECT FROM duetime.history h WHERE h.tenant = $2 AND h.unique_key = $3 AND h.error = $4) AS replaced
WHERE EXISTS (SELECT FROM duetime.jobs WHERE id = $1) OR EXISTS (SELECT FROM duetime.history WHERE id = $1);

-- name: holder
-- The live job with this key, and whether it counts: $1 tenant, $2 key, $3 states, $4 period in microseconds or NULL. Locked: what is
-- decided about it holds until the end of the transaction.
SELECT id, state, queue, priority,
    state = ANY ($3::text[]) AND ($4::bigint IS NULL OR created_at >= clock_timestamp() - $4::bigint * interval '1 microsecond') AS counts
FROM duetime.jobs WHERE tenant = $1 AND unique_key = $2 FOR UPDATE;

-- name: finished_holder
-- The latest finished job with this key that counts; the parameters as above.
SELECT id FROM duetime.history
WHERE tenant = $1 AND unique_key = $2 AND state = ANY ($3::text[])
    AND ($4::bigint IS NULL OR created_at >= clock_timestamp() - $4::bigint * interval '1 microsecond')
ORDER BY created_at DESC LIMIT 1;

-- name: drop_key
UPDATE duetime.jobs SET unique_key = NULL WHERE id = $1;

-- name: reschedule_job
UPDATE duetime.jobs SET due_at = $2 WHERE id = $1;

-- name: replace_job
-- $1 the job that waits, $2 why it ends.
WITH ended AS (DELETE FROM duetime.jobs WHERE id = $1 RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {lived}, error, finished_at)
        SELECT {draft}, 'cancelled', attempt, failures, losses, {lived}, $2::text, clock_timestamp() FROM ended)
SELECT awaited FROM ended;

-- name: withdraw_draft
-- Take back what this very transaction has stored.
DELETE FROM duetime.jobs WHERE id = $1;
