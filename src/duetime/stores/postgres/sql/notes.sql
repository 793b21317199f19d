-- What a running attempt keeps, and who waits for its end.

-- name: save_notes
-- $1 ids, $2 attempts, $3 checkpoints, $4 progress; NULL leaves what is there. Answers the ids that were written.
WITH s AS MATERIALIZED (
        SELECT k.tid, x.id, x.checkpoint, x.progress
        FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[]) AS x(id, attempt, checkpoint, progress) ORDER BY id) x
        CROSS JOIN LATERAL (
            SELECT k.ctid AS tid FROM duetime.jobs k WHERE k.id = x.id AND k.attempt = x.attempt AND k.state = 'running' LIMIT 1 FOR UPDATE) k)
UPDATE duetime.jobs j SET checkpoint = coalesce(s.checkpoint, j.checkpoint), progress = coalesce(s.progress, j.progress)
FROM s WHERE j.ctid = ANY (ARRAY(SELECT tid FROM s)) AND j.id = s.id RETURNING j.id;

-- name: take_mark
-- $1 job, $2 attempt, $3 key, $4 nonce. The job's row is locked, so that the attempt number holds until the mark is written.
WITH mine AS MATERIALIZED (SELECT id FROM duetime.jobs WHERE id = $1 AND attempt = $2 AND state = 'running' FOR UPDATE),
    made AS (INSERT INTO duetime.marks (job_id, key, nonce) SELECT id, $3::text, $4::uuid FROM mine ON CONFLICT DO NOTHING RETURNING 1)
SELECT EXISTS (SELECT FROM mine) AS running, EXISTS (SELECT FROM made) AS made;

-- name: mark_nonce
SELECT nonce FROM duetime.marks WHERE job_id = $1 AND key = $2;

-- name: await_job
-- Written even if it says so already: whoever ends the job in this moment is waited for, and then there is no row. Claims pass over a row
-- while it is written: so it does not wait for the disk (who waits says so again every few seconds), and a pending one is told of once more.
UPDATE duetime.jobs SET awaited = true WHERE id = $1 AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING state = 'pending' AS pending, queue, priority, due_at, overlap IS NOT NULL AS exclusive;
