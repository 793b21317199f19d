-- Settling: the hot path. The remarks at the top of claim.sql hold here, too.

-- name: settle_successes
-- Jobs that have no permit to pass on: without limit key and overlap policy, and no job waits for one of their schedule. $1 ids, $2 the attempt of all, $3 started, $4 finished
-- (microseconds: they are near now, where a double is exact), $5 results, or $6 the one of all. The number of rows written is the result; a
-- message tells of each job that a caller waits for.
WITH d AS (DELETE FROM duetime.jobs j
    WHERE id = ANY ($1::uuid[]) AND attempt = $2 AND state = 'running' AND limit_key IS NULL AND overlap IS NULL
        AND (schedule_id IS NULL OR NOT EXISTS (SELECT FROM duetime.jobs w WHERE w.waits_for = '/' || j.schedule_id OFFSET 0)) RETURNING *)
INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {progressed}, error, started_at, finished_at, result)
SELECT {d.draft}, 'succeeded', attempt, failures, losses, {progressed}, NULL,
    to_timestamp(s.started / 1e6::float8), to_timestamp(s.finished / 1e6::float8),
    CASE WHEN d.awaited THEN duetime.announce_done(d.id, coalesce($6, s.result)) ELSE coalesce($6, s.result) END
FROM d JOIN unnest($1::uuid[], $3::bigint[], $4::bigint[], $5::bytea[]) AS s(id, started, finished, result) ON s.id = d.id;

-- name: settle
-- Every kind of ending. $1 ids, $2 attempts, $3 states, $4 due, $5 failures, $6 losses, $7 endings, $8 started, $9 finished, $10 results,
-- $11 errors, $12 how many jobs are wanted under each permit. $13 the node that takes over, $14 its room, $15 its queues, $16 its targets.
-- A requested cancellation has stored its reason as error: it stays. Running makes the job external: node 0; a repetition does not move the
-- deadline. Returns job_news: unwritten, done, claimable, started.
WITH x AS MATERIALIZED (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::text[],
            $8::timestamptz[], $9::timestamptz[], $10::bytea[], $11::text[], $12::bigint[])
        AS x(id, attempt, state, due_at, failures, losses, ending, started_at, finished_at, result, error, wanted) ORDER BY id),
    s AS MATERIALIZED (
        SELECT k.tid, k.node, k.permit, x.* FROM x CROSS JOIN LATERAL (
            SELECT k.ctid AS tid, k.node, k.permit FROM duetime.jobs k
            WHERE k.id = x.id AND k.attempt = x.attempt AND k.state = 'running' AND (x.state <> 'running' OR k.node <> 0) LIMIT 1 FOR UPDATE) k),
    d AS (DELETE FROM duetime.jobs WHERE ctid = ANY (ARRAY(SELECT tid FROM s WHERE state NOT IN ('pending', 'running'))) RETURNING *),
    p AS (UPDATE duetime.jobs j SET state = s.state, node = CASE WHEN s.state = 'running' THEN 0 END,
            claimed_at = CASE WHEN s.state = 'running' THEN j.claimed_at END, due_at = s.due_at, failures = s.failures,
            losses = s.losses, error = coalesce(CASE WHEN j.cancel_requested THEN j.error END, s.error, j.error), begun = false, permit = CASE WHEN s.state = 'running' THEN j.permit END
        FROM s WHERE j.ctid = ANY (ARRAY(SELECT tid FROM s WHERE state IN ('pending', 'running'))) AND j.id = s.id
        RETURNING j.*),
    h AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {progressed}, error, started_at, finished_at, result)
        SELECT {d.draft}, s.state, d.attempt, s.failures, s.losses, {d.progressed},
            coalesce(CASE WHEN s.state = 'cancelled' AND d.cancel_requested THEN d.error END, s.error), s.started_at, s.finished_at, s.result
        FROM d JOIN s ON s.id = d.id),
    w AS (SELECT id, attempt, target, limit_key FROM d UNION ALL SELECT id, attempt, target, limit_key FROM p),
    a AS (INSERT INTO duetime.attempts (job_id, attempt, node, ending, started_at, finished_at, error, result)
        SELECT s.id, s.attempt, s.node, s.ending, s.started_at, s.finished_at, s.error, s.result FROM w JOIN s ON s.id = w.id
        WHERE s.state <> 'running' AND s.ending <> 'succeeded' AND NOT (s.ending = 'released' AND s.started_at IS NULL)),
    f AS MATERIALIZED (
        SELECT w.limit_key AS name, s.permit, s.wanted, CASE WHEN l.lowered THEN l.max_running END AS maximum
        FROM w JOIN s ON s.id = w.id AND s.state <> 'running' AND s.wanted > 0
        JOIN duetime.limits l ON l.target = w.target AND l.max_running IS NOT NULL AND w.limit_key IS NOT NULL
        UNION ALL SELECT '/' || d.schedule_id, d.id, 1, NULL FROM d
        WHERE d.overlap <> 'skip' OR d.overlap IS NULL AND d.schedule_id IS NOT NULL
            AND EXISTS (SELECT FROM duetime.jobs o WHERE o.waits_for = '/' || d.schedule_id OFFSET 0)
            AND NOT EXISTS (SELECT FROM duetime.jobs o
                WHERE o.schedule_id = d.schedule_id AND o.attempt > 0 AND o.id <> ALL (ARRAY(SELECT id FROM d)) OFFSET 0))
SELECT n.* FROM (SELECT x.id FROM x WHERE NOT EXISTS (SELECT FROM w WHERE w.id = x.id AND w.attempt = x.attempt) OFFSET 0) x
CROSS JOIN LATERAL jsonb_populate_record(NULL::duetime.job_news, jsonb_build_object('kind', 'unwritten', 'id', x.id)) n
UNION ALL SELECT 'done', NULL, {claimed} FROM d WHERE awaited
UNION ALL SELECT 'claimable', NULL, {claimed} FROM p WHERE state = 'pending'
UNION ALL SELECT * FROM duetime.pass_on(ARRAY(SELECT name FROM f), ARRAY(SELECT permit FROM f), ARRAY(SELECT wanted FROM f),
    ARRAY(SELECT maximum FROM f), $13, $14, $15, $16);

-- name: refused
-- $1 ids, $2 attempts, $3 states, $4 due. Those that were not written, now or by an earlier call whose reply was lost.
SELECT x.id FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[]) AS x(id, attempt, state, due_at)
WHERE NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id AND h.attempt = x.attempt AND h.state = x.state OFFSET 0)
    AND NOT EXISTS (SELECT FROM duetime.jobs j
        WHERE j.id = x.id AND j.attempt = x.attempt AND j.state = x.state
            AND (x.state = 'pending' AND j.due_at = x.due_at OR x.state = 'running' AND j.node = 0) OFFSET 0);
