-- What a running attempt keeps.

-- name: save_progress
-- $1 ids, $2 attempts, $3 checkpoints, $4 progress; $5 whether they start; $6 deadlines, only for external jobs. NULL leaves a field as it is.
-- Returns the ids that were written.
WITH s AS MATERIALIZED (
        SELECT k.tid, x.* FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[], $5::boolean[], $6::timestamptz[])
            AS x(id, attempt, checkpoint, progress, started, deadline) ORDER BY id) x
        CROSS JOIN LATERAL (
            SELECT k.ctid AS tid FROM duetime.jobs k WHERE k.id = x.id AND k.attempt = x.attempt AND k.state = 'running'
                AND (x.deadline IS NULL OR k.node = 0) LIMIT 1 FOR UPDATE) k)
UPDATE duetime.jobs j SET checkpoint = coalesce(s.checkpoint, j.checkpoint), progress = coalesce(s.progress, j.progress),
    begun = j.begun OR s.started, due_at = coalesce(s.deadline, j.due_at)
FROM s WHERE j.ctid = ANY (ARRAY(SELECT tid FROM s)) AND j.id = s.id RETURNING j.id;

-- name: take_once
-- $1 job, $2 attempt, $3 key, $4 nonce. The job's row is locked, so that the attempt number holds until the marker is written.
WITH mine AS MATERIALIZED (SELECT id FROM duetime.jobs WHERE id = $1 AND attempt = $2 AND state = 'running' FOR UPDATE),
    taken AS (INSERT INTO duetime.once_markers (job_id, key, nonce) SELECT id, $3::text, $4::uuid FROM mine ON CONFLICT DO NOTHING RETURNING 1)
SELECT EXISTS (SELECT FROM mine) AS running, EXISTS (SELECT FROM taken) AS taken;

-- name: once_nonce
SELECT nonce FROM duetime.once_markers WHERE job_id = $1 AND key = $2;
