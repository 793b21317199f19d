-- Claiming and settling: the hot path.
--
-- Autoanalyze may meet the live table when it is empty and believe that it stays so; the plan of a plain join of an array with the
-- table then turns round and walks every dead entry of the primary key. So whatever joins an array to `jobs` does it as
-- CROSS JOIN LATERAL (... LIMIT 1), which cannot be turned round, and goes on by ctid; or it looks the array up in the primary key as
-- id = ANY (...), with no other index to choose. For the same reason a correlated EXISTS ends in OFFSET 0: without it the planner may read
-- the whole table once and hash it; and what else it asks of a row stands outside the look into the index that is meant, where the planner
-- cannot take it as a reason for another.

-- name: claim
-- $1 room, $2 node, $3 queues, $4 priorities, $5 lower bounds, $6 prefetch in microseconds, $7 targets. Jobs that may run side by side.
-- Nothing at all where jobs with a gate are due or a queue is limited: there `claim_in_turns` decides.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM unnest($3::text[], $4::smallint[], $5::timestamptz[]) AS l(queue, priority, low)
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM duetime.jobs j
        WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
            AND j.due_at >= l.low AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
        ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED) c
    WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs g WHERE g.state = 'pending' AND g.gate IS NOT NULL))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.goes_in_turns($3, $4, $6)))
    LIMIT $1))
RETURNING {claimed};

-- name: claim_lane
-- The same in one lane, $3 and $4, from $5 on: what an idle worker asks when it hears of a job, and how long that takes is its pick-up time.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT j.ctid FROM duetime.jobs j
    WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = $3 AND j.priority = $4
        AND j.due_at >= $5 AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
        AND EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND NOT EXISTS (SELECT FROM duetime.queues q WHERE q.paused AND q.name = $3)
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs g WHERE g.state = 'pending' AND g.gate IS NOT NULL))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.goes_in_turns(ARRAY[$3], ARRAY[$4], $6)))
    ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING {claimed};

-- name: claim_with_exclusive
-- As `claim`, and in each lane also jobs that run one at a time per schedule: those in whose way no started job of their schedule is, the
-- oldest fire first. A unique index refuses what two claims at the same moment might both believe.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM unnest($3::text[], $4::smallint[], $5::timestamptz[]) AS l(queue, priority, low)
    CROSS JOIN LATERAL (
        SELECT alone.ctid FROM (
            SELECT j.ctid FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
                AND NOT EXISTS (SELECT FROM duetime.jobs s WHERE s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id OFFSET 0)
                AND (j.attempt > 0 OR NOT EXISTS (
                    SELECT FROM (
                        SELECT * FROM duetime.jobs o
                        WHERE o.schedule_id = j.schedule_id AND o.attempt = 0 AND o.fire_time <= j.fire_time
                            AND (o.fire_time, o.id) < (j.fire_time, j.id) OFFSET 0) o
                    WHERE o.state = 'pending' AND o.overlap IS NOT NULL AND o.target = ANY ($7::text[])
                        AND o.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond'
                        AND EXISTS (SELECT FROM unnest($3::text[], $4::smallint[]) AS m(queue, priority)
                            WHERE m.queue = o.queue AND m.priority = o.priority) OFFSET 0))
            ORDER BY j.due_at LIMIT $1 FOR UPDATE OF j SKIP LOCKED) alone
        UNION ALL
        SELECT beside.ctid FROM (
            SELECT j.ctid FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at >= l.low AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
            ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED) beside) c
    WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs g WHERE g.state = 'pending' AND g.gate IS NOT NULL))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.goes_in_turns($3, $4, $6)))
    LIMIT $1))
RETURNING {claimed};

-- name: claim_past_backlog
-- The same where thousands wait behind a job of their own schedule: of those only the first can start, so only it is looked at closely. Every
-- one that is due is read for that, which costs more where all of them can start.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM unnest($3::text[], $4::smallint[], $5::timestamptz[]) AS l(queue, priority, low)
    CROSS JOIN LATERAL (
        SELECT alone.ctid FROM (
            SELECT k.ctid FROM (
                SELECT * FROM (
                    SELECT DISTINCT ON (coalesce(j.schedule_id, j.id), j.attempt > 0) j.id, j.schedule_id, j.attempt, j.fire_time, j.due_at FROM duetime.jobs j
                    WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
                        AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
                    ORDER BY coalesce(j.schedule_id, j.id), j.attempt > 0, j.fire_time, j.id) first
                ORDER BY first.due_at OFFSET 0) j
            CROSS JOIN LATERAL (
                SELECT k.ctid FROM duetime.jobs k WHERE k.id = j.id AND k.attempt = j.attempt AND k.state = 'pending'
                LIMIT 1 FOR UPDATE SKIP LOCKED) k
            WHERE NOT EXISTS (SELECT FROM duetime.jobs s WHERE s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id OFFSET 0)
                AND (j.attempt > 0 OR NOT EXISTS (
                    SELECT FROM (
                        SELECT * FROM duetime.jobs o
                        WHERE o.schedule_id = j.schedule_id AND o.attempt = 0 AND o.fire_time <= j.fire_time
                            AND (o.fire_time, o.id) < (j.fire_time, j.id) OFFSET 0) o
                    WHERE o.state = 'pending' AND o.overlap IS NOT NULL AND o.target = ANY ($7::text[])
                        AND o.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond'
                        AND EXISTS (SELECT FROM unnest($3::text[], $4::smallint[]) AS m(queue, priority)
                            WHERE m.queue = o.queue AND m.priority = o.priority OFFSET 0) OFFSET 0))
            LIMIT $1) alone
        UNION ALL
        SELECT beside.ctid FROM (
            SELECT j.ctid FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at >= l.low AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND j.target = ANY ($7::text[])
            ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED) beside) c
    WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs g WHERE g.state = 'pending' AND g.gate IS NOT NULL))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.goes_in_turns($3, $4, $6)))
    LIMIT $1))
RETURNING {claimed};

-- name: claim_in_turns
-- The same with gates and limited queues: see the function.
SELECT * FROM duetime.claim_in_turns($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23);

-- name: hold_back
-- $1 node, $2 queues, $3 priorities, $4 targets, $5 prefetch in microseconds. Exclusive jobs that are due while an earlier one has started
-- and not finished: `skip` ends as skipped, `cancel_previous` asks the one in its way to stop; a retry that waits falls due to be told so.
-- Answers the running jobs that were asked (with their node), those that ended and are waited for, and a row without an id where a claim
-- must go in turns.
WITH blocked AS MATERIALIZED (
        SELECT j.tid, j.id, j.overlap, s.id AS in_the_way FROM unnest($2::text[], $3::smallint[]) AS l(queue, priority)
        CROSS JOIN LATERAL (
            SELECT j.ctid AS tid, j.id, j.schedule_id, j.overlap FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at <= statement_timestamp() AND j.attempt = 0 AND j.overlap <> 'queue' AND j.target = ANY ($4::text[])
            ORDER BY j.due_at LIMIT 1000 FOR UPDATE SKIP LOCKED) j
        CROSS JOIN LATERAL (
            SELECT s.id FROM duetime.jobs s WHERE s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id LIMIT 1) s
        WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $1 AND NOT dead AND lease_until > statement_timestamp())
            AND l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))),
    skipped AS (DELETE FROM duetime.jobs WHERE ctid = ANY (ARRAY(SELECT tid FROM blocked WHERE overlap = 'skip')) RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {lived}, error, finished_at)
        SELECT {k.draft}, 'skipped', attempt, failures, losses, {lived},
            format('overlap: job %s has started and not finished', b.in_the_way), clock_timestamp()
        FROM skipped k JOIN blocked b ON b.id = k.id),
    asked AS (UPDATE duetime.jobs SET cancel_requested = true,
            due_at = CASE WHEN state = 'pending' THEN least(due_at, statement_timestamp()) ELSE due_at END
        WHERE id = ANY (ARRAY(SELECT in_the_way FROM blocked WHERE overlap = 'cancel_previous')) AND NOT cancel_requested
        RETURNING node, id)
SELECT node, id FROM asked WHERE node IS NOT NULL
UNION ALL SELECT NULL, id FROM skipped WHERE awaited
UNION ALL SELECT NULL, NULL
WHERE (EXISTS (SELECT FROM duetime.jobs g WHERE g.state = 'pending' AND g.gate IS NOT NULL)
    OR EXISTS (SELECT FROM duetime.queues q WHERE q.limited)) AND duetime.goes_in_turns($2, $3, $5);

-- name: next_due
-- $1 queues, $2 priorities, $3 prefetch in microseconds, $4 targets; of these $5 have a rate of $6 starts in $7 microseconds.
SELECT least(min(c.due_at), CASE WHEN cardinality($5::text[]) > 0
        OR EXISTS (SELECT FROM duetime.queues q WHERE q.limited AND NOT q.paused AND q.name = ANY ($1::text[]))
    THEN duetime.next_start($1, $2, statement_timestamp() + $3::bigint * interval '1 microsecond', $4, $5, $6, $7) END)
FROM unnest($1::text[], $2::smallint[]) AS l(queue, priority) CROSS JOIN LATERAL (
    SELECT least(
        (SELECT j.due_at FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at > statement_timestamp() + $3::bigint * interval '1 microsecond' AND j.target = ANY ($4::text[])
            ORDER BY j.due_at LIMIT 1),
        (SELECT j.due_at FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at > statement_timestamp() + $3::bigint * interval '1 microsecond' AND j.target = ANY ($4::text[])
            ORDER BY j.due_at LIMIT 1),
        (SELECT j.due_at FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at > '-infinity' AND j.due_at > statement_timestamp() + $3::bigint * interval '1 microsecond' AND j.target = ANY ($4::text[])
            ORDER BY j.due_at LIMIT 1)) AS due_at) c
WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused));

-- name: begin
UPDATE duetime.jobs SET begun = true WHERE id = $1 AND attempt = $2 AND state = 'running';

-- name: settle_successes
-- $1 ids, $2 the attempt of all, $3 started, $4 finished (microseconds: they are always near now, where a double is exact), $5 results, or $6
-- the one of all. A job that is changed in this very moment is judged as it is then. The number of rows inserted tells whether any was
-- refused; who waits for one of them is told by a message.
WITH d AS (DELETE FROM duetime.jobs WHERE id = ANY ($1::uuid[]) AND attempt = $2 AND state = 'running' RETURNING *)
INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {lived}, error, started_at, finished_at, result)
SELECT {d.draft}, 'succeeded', attempt, failures, losses, {lived}, NULL,
    to_timestamp(s.started / 1e6::float8), to_timestamp(s.finished / 1e6::float8),
    CASE WHEN d.awaited THEN duetime.told(d.id, coalesce($6, s.result)) ELSE coalesce($6, s.result) END
FROM d JOIN unnest($1::uuid[], $3::bigint[], $4::bigint[], $5::bytea[]) AS s(id, started, finished, result) ON s.id = d.id;

-- name: settle
-- Every kind of ending. $1 ids, $2 attempts, $3 states, $4 due, $5 failures, $6 losses, $7 endings, $8 started, $9 finished, $10 results,
-- $11 errors. Running is handed over: node 0, and said again it moves no deadline. Answers the ids that were written, the lane of each that is pending again, and which of the others are waited for.
WITH s AS MATERIALIZED (
        SELECT k.tid, k.node, x.*
        FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::text[],
                $8::timestamptz[], $9::timestamptz[], $10::bytea[], $11::text[])
            AS x(id, attempt, state, due_at, failures, losses, ending, started_at, finished_at, result, error) ORDER BY id) x
        CROSS JOIN LATERAL (
            SELECT k.ctid AS tid, k.node FROM duetime.jobs k
            WHERE k.id = x.id AND k.attempt = x.attempt AND k.state = 'running' AND (x.state <> 'running' OR k.node <> 0) LIMIT 1 FOR UPDATE) k),
    d AS (DELETE FROM duetime.jobs WHERE ctid = ANY (ARRAY(SELECT tid FROM s WHERE state NOT IN ('pending', 'running'))) RETURNING *),
    p AS (UPDATE duetime.jobs j SET state = s.state, node = CASE WHEN s.state = 'running' THEN 0 END,
            claimed_at = CASE WHEN s.state = 'running' THEN j.claimed_at END, due_at = s.due_at, failures = s.failures,
            losses = s.losses, error = coalesce(s.error, j.error), begun = false
        FROM s WHERE j.ctid = ANY (ARRAY(SELECT tid FROM s WHERE state IN ('pending', 'running'))) AND j.id = s.id
        RETURNING j.id, CASE WHEN j.state = 'pending' THEN j.queue END AS queue, j.priority, j.due_at),
    h AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {lived}, error, started_at, finished_at, result)
        SELECT {d.draft}, s.state, d.attempt, s.failures, s.losses, {d.lived}, s.error, s.started_at, s.finished_at, s.result
        FROM d JOIN s ON s.id = d.id RETURNING id),
    w AS (SELECT id, NULL::text AS queue, NULL::smallint AS priority, NULL::timestamptz AS due_at FROM h
        UNION ALL SELECT id, queue, priority, due_at FROM p),
    e AS (SELECT id FROM d WHERE awaited),
    a AS (INSERT INTO duetime.attempts (job_id, attempt, node, ending, started_at, finished_at, error)
        SELECT s.id, s.attempt, s.node, s.ending, s.started_at, s.finished_at, s.error FROM w JOIN s ON s.id = w.id
        WHERE s.state <> 'running' AND s.ending <> 'succeeded' AND NOT (s.ending = 'released' AND s.started_at IS NULL))
SELECT w.id, w.queue, w.priority, w.due_at, e.id IS NOT NULL AS awaited FROM w LEFT JOIN e ON e.id = w.id;

-- name: refused
-- $1 ids, $2 attempts, $3 states, $4 due. Those that were not written, now or by an earlier call whose reply was lost.
SELECT x.id FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[]) AS x(id, attempt, state, due_at)
WHERE NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = x.id AND h.attempt = x.attempt AND h.state = x.state OFFSET 0)
    AND NOT EXISTS (SELECT FROM duetime.jobs j
        WHERE j.id = x.id AND j.attempt = x.attempt AND j.state = x.state
            AND (x.state = 'pending' AND j.due_at = x.due_at OR x.state = 'running' AND j.node = 0) OFFSET 0);
