-- Claiming: the hot path.
--
-- Autoanalyze may see the live table when it is empty and believe that it stays empty. The plan of a plain join of an array with the table then
-- reads the table first and walks every dead entry of the primary key. Therefore a statement that joins an array to `jobs` uses
-- CROSS JOIN LATERAL (... LIMIT 1), which cannot be reordered, and continues by ctid; or it looks the array up in the primary key as
-- id = ANY (...), with no other index to choose. For the same reason a correlated EXISTS ends in OFFSET 0: without it the planner may read
-- the whole table once and hash it.

-- part: plain_of_lane
-- Jobs of the lane l that need no permit.
j.state = 'pending' AND j.overlap IS NULL AND j.limit_key IS NULL AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant

-- part: restricted_of_lane
-- Jobs of the lane l that need a permit and do not wait for it.
(j.limit_key IS NOT NULL OR j.overlap IS NOT NULL) AND j.waits_for IS NULL AND j.state = 'pending' AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant

-- part: of_segment
get_byte(uuid_send(j.id), 15) % 64 = ANY ($5::int[])

-- name: claim
-- $1 room, $2 node, $3 queues, $4 priorities, $5 lower bounds, $6 tenants, $7 prefetch in microseconds, $8 targets. Jobs that need no permit;
-- nothing where jobs that need one are due, or a queue has limits.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM unnest($3::text[], $4::smallint[], $5::timestamptz[], $6::text[]) AS l(queue, priority, low, tenant)
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM duetime.jobs j
        WHERE {plain_of_lane} AND j.due_at >= l.low AND j.due_at <= statement_timestamp() + $7::bigint * interval '1 microsecond' AND j.target = ANY ($8::text[])
        ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED) c
    WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs p
                WHERE (p.limit_key IS NOT NULL OR p.overlap IS NOT NULL) AND p.waits_for IS NULL AND p.state = 'pending'))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.needs_permits($3, $4, $6, $7)))
    LIMIT $1))
RETURNING {claimed};

-- name: claim_lane
-- The same for one lane, $3 and $4, from $5 on, of tenant $6: an idle worker sends it when it hears of a job, so it decides the pick-up time.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT j.ctid FROM duetime.jobs j
    WHERE j.state = 'pending' AND j.overlap IS NULL AND j.limit_key IS NULL AND j.queue = $3 AND j.priority = $4 AND j.tenant = $6
        AND j.due_at >= $5 AND j.due_at <= statement_timestamp() + $7::bigint * interval '1 microsecond' AND j.target = ANY ($8::text[])
        AND EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
        AND NOT EXISTS (SELECT FROM duetime.queues q WHERE q.paused AND q.name = $3)
        AND NOT (((SELECT EXISTS (SELECT FROM duetime.jobs p
                WHERE (p.limit_key IS NOT NULL OR p.overlap IS NOT NULL) AND p.waits_for IS NULL AND p.state = 'pending'))
            OR (SELECT EXISTS (SELECT FROM duetime.queues q WHERE q.limited))) AND (SELECT duetime.needs_permits(ARRAY[$3], ARRAY[$4], ARRAY[$6], $7)))
    ORDER BY j.due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING {claimed};

-- name: claim_named
-- $1 room, $2 node, $3 ids, $4 numbers of attempts, $5 prefetch in microseconds, $6 targets. Of the named jobs those that need no permit and
-- are in no queue with limits. coalesce: the predicates of the partial indexes must not follow from the conditions, or the planner may read one.
UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = $2, claimed_at = statement_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM unnest($3::uuid[], $4::bigint[]) AS t(id, attempt)
    CROSS JOIN LATERAL (
        SELECT j.ctid FROM duetime.jobs j
        WHERE j.id = t.id AND j.attempt = t.attempt AND j.state = 'pending' AND coalesce(j.limit_key, j.overlap) IS NULL
            AND j.due_at <= statement_timestamp() + $5::bigint * interval '1 microsecond' AND j.target = ANY ($6::text[])
            AND j.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused UNION ALL
                SELECT q.name FROM duetime.queues q WHERE q.limited))
        LIMIT 1 FOR UPDATE SKIP LOCKED) c
    WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $2 AND NOT dead AND lease_until > statement_timestamp())
    LIMIT $1))
RETURNING {claimed};

-- name: needs_permits
-- $1 queues, $2 priorities, $3 tenants, $4 prefetch in microseconds.
SELECT duetime.needs_permits($1, $2, $3, $4);

-- name: claim_candidates
-- See the function.
SELECT * FROM duetime.claim_candidates($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: lock_named
-- $1 node, $2 ids, $3 numbers of attempts, $4 prefetch in microseconds, $5 targets, $6 whether jobs with a limit key are wanted.
SELECT c.id, c.queue FROM unnest($2::uuid[], $3::bigint[]) WITH ORDINALITY AS t(id, attempt, place)
CROSS JOIN LATERAL (
    SELECT j.id, j.queue FROM duetime.jobs j
    WHERE j.id = t.id AND j.attempt = t.attempt AND j.state = 'pending' AND j.waits_for IS NULL
        AND j.due_at <= statement_timestamp() + $4::bigint * interval '1 microsecond' AND j.target = ANY ($5::text[]) AND ($6 OR j.limit_key IS NULL)
        AND j.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
    LIMIT 1 FOR UPDATE SKIP LOCKED) c
WHERE EXISTS (SELECT FROM duetime.nodes WHERE id = $1 AND NOT dead AND lease_until > statement_timestamp())
ORDER BY t.place;

-- name: named_candidates
-- Of the jobs that `lock_named` has locked: $12.
SELECT * FROM duetime.claim_candidates($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: execute_decision
-- The decision about candidates, whose rows this transaction has locked. $1 node; $2 jobs that start; $3 jobs that wait, $4 for what; $5 jobs
-- that ask again, $6 when; $7 jobs to skip, $8 why; $9 jobs to cancel; $10 limit keys, $11 spent_until, $12 asks_at, $13 served_at; $14
-- queues, $15 spent_until; $16 names for which waiting jobs become claimable, $17 how many; $18 why jobs are cancelled. Returns job_news: started, claimable, done, cancel.
-- A job to cancel that is being settled is passed over: its settlement may wait for a row that this transaction has locked.
WITH started AS (UPDATE duetime.jobs j SET state = 'running', attempt = attempt + 1, node = $1, claimed_at = statement_timestamp(),
            permit = CASE WHEN limit_key IS NOT NULL THEN gen_random_uuid() END,
            cancel_requested = cancel_requested OR id = ANY ($9) OR overlap IS NOT NULL AND attempt > 0 AND EXISTS (SELECT FROM duetime.jobs o
                WHERE o.waits_for = '/' || j.schedule_id AND o.overlap = 'cancel_previous' OFFSET 0)
        WHERE id = ANY ($2::uuid[]) RETURNING {claimed}),
    waiting AS (UPDATE duetime.jobs j SET waits_for = x.name FROM unnest($3::uuid[], $4::text[]) AS x(id, name)
        WHERE j.id = x.id AND j.id = ANY ($3)),
    asking AS (UPDATE duetime.jobs j SET due_at = x.at FROM unnest($5::uuid[], $6::timestamptz[]) AS x(id, at)
        WHERE j.id = x.id AND j.id = ANY ($5)),
    skipped AS (DELETE FROM duetime.jobs WHERE id = ANY ($7::uuid[]) RETURNING *),
    kept AS (INSERT INTO duetime.history ({draft}, state, attempt, failures, losses, {progressed}, error, finished_at)
        SELECT {s.draft}, 'skipped', s.attempt, s.failures, s.losses, {s.progressed}, x.reason, clock_timestamp()
        FROM skipped s JOIN unnest($7::uuid[], $8::text[]) AS x(id, reason) ON x.id = s.id),
    cancelled AS (UPDATE duetime.jobs SET cancel_requested = true, error = $18,
            due_at = CASE WHEN state = 'pending' THEN least(due_at, statement_timestamp()) ELSE due_at END
        WHERE ctid = ANY (ARRAY(SELECT j.ctid FROM duetime.jobs j WHERE j.id = ANY ($9::uuid[]) AND j.id <> ALL ($2) AND NOT j.cancel_requested
            FOR UPDATE SKIP LOCKED)) RETURNING node, {claimed}),
    keys AS (INSERT INTO duetime.limit_keys (name, spent_until, asks_at, served_at)
        SELECT * FROM unnest($10::text[], $11::bigint[], $12::bigint[], $13::bigint[]) AS x(name) ORDER BY x.name
        ON CONFLICT (name) DO UPDATE SET spent_until = excluded.spent_until, asks_at = excluded.asks_at, served_at = excluded.served_at),
    queue_rates AS (UPDATE duetime.queues q SET spent_until = x.spent_until FROM unnest($14::text[], $15::bigint[]) AS x(name, spent_until)
        WHERE q.name = x.name AND q.name = ANY ($14)),
    promoted AS (UPDATE duetime.jobs SET waits_for = NULL WHERE ctid = ANY (ARRAY(
            SELECT j.tid FROM unnest($16::text[], $17::bigint[]) AS n(name, number) CROSS JOIN LATERAL (
                SELECT j.ctid AS tid FROM duetime.jobs j WHERE j.waits_for = n.name ORDER BY j.priority DESC, j.due_at LIMIT n.number
                FOR UPDATE SKIP LOCKED) j)) RETURNING {claimed})
SELECT 'started' AS kind, $1::bigint AS node, {claimed} FROM started
UNION ALL SELECT 'claimable', NULL, {claimed} FROM promoted
UNION ALL SELECT 'done', NULL, {claimed} FROM skipped WHERE awaited
UNION ALL SELECT CASE WHEN node IS NULL THEN 'claimable' ELSE 'cancel' END, node, {claimed} FROM cancelled WHERE node IS DISTINCT FROM 0;

-- name: passed_over
-- Of jobs to cancel, $1, the schedules of those that are not marked.
SELECT DISTINCT schedule_id FROM duetime.jobs WHERE id = ANY ($1::uuid[]) AND NOT cancel_requested AND schedule_id IS NOT NULL;

-- name: waiting_names
-- Names that jobs wait for, after $1, at most $2: the target of a job that waits, its limit, what is in use, and for a schedule whether a job
-- of it has started and not finished.
WITH RECURSIVE names AS (
    (SELECT j.waits_for AS name, j.target, 1::bigint AS number FROM duetime.jobs j WHERE j.waits_for > $1 ORDER BY j.waits_for LIMIT 1)
    UNION ALL
    SELECT f.waits_for, f.target, n.number + 1 FROM names n CROSS JOIN LATERAL (
        SELECT j.waits_for, j.target FROM duetime.jobs j WHERE j.waits_for > n.name ORDER BY j.waits_for LIMIT 1) f
    WHERE n.number < $2)
SELECT n.name, n.target, l.max_running, l.rate_count, l.rate_period, coalesce(k.spent_until, 0) AS spent_until,
    coalesce(k.asks_at, 0) AS asks_at, coalesce(k.served_at, 0) AS served_at, (SELECT count(DISTINCT r.permit) FROM duetime.jobs r
        WHERE r.limit_key = n.name AND r.limit_key IS NOT NULL AND r.state = 'running') AS permits,
    left(n.name, 1) = '/' AND EXISTS (SELECT FROM duetime.jobs s
        WHERE s.schedule_id = CASE WHEN left(n.name, 1) = '/' THEN substr(n.name, 2)::uuid END AND s.attempt > 0 OFFSET 0) AS started,
    clock_timestamp() AS now
FROM names n LEFT JOIN duetime.limits l ON l.target = n.target LEFT JOIN duetime.limit_keys k ON k.name = n.name;

-- name: promote
-- $1 names, $2 how many of the jobs that wait for each become claimable, best first.
UPDATE duetime.jobs SET waits_for = NULL WHERE ctid = ANY (ARRAY(
    SELECT j.tid FROM unnest($1::text[], $2::bigint[]) AS n(name, number) CROSS JOIN LATERAL (
        SELECT j.ctid AS tid FROM duetime.jobs j WHERE j.waits_for = n.name ORDER BY j.priority DESC, j.due_at LIMIT n.number
        FOR UPDATE SKIP LOCKED) j))
RETURNING queue, priority, due_at, tenant;

-- name: next_due
-- $1 queues, $2 priorities, $3 tenants, $4 prefetch in microseconds, $5 targets. The earliest due time; and for each queue with a rate that has due jobs, its
-- rate. A job that needs a permit may have been left by the claim that looked ahead: of these every one that is not due yet counts.
SELECT min(c.due_at) AS due_at, NULL::bigint AS rate_count, NULL::bigint AS rate_period, NULL::bigint AS spent_until, clock_timestamp() AS now
FROM unnest($1::text[], $2::smallint[], $3::text[]) AS l(queue, priority, tenant) CROSS JOIN LATERAL (
    SELECT least(
        (SELECT j.due_at FROM duetime.jobs j
            WHERE {plain_of_lane} AND j.due_at > statement_timestamp() + $4::bigint * interval '1 microsecond' AND j.target = ANY ($5::text[])
            ORDER BY j.due_at LIMIT 1),
        (SELECT j.due_at FROM duetime.jobs j
            WHERE {restricted_of_lane} AND j.due_at > statement_timestamp() AND j.target = ANY ($5::text[])
            ORDER BY j.due_at LIMIT 1)) AS due_at) c
WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
UNION ALL
SELECT NULL, q.rate_count, q.rate_period, q.spent_until, clock_timestamp() FROM duetime.queues q
WHERE q.limited AND NOT q.paused AND q.rate_count IS NOT NULL AND q.name = ANY ($1) AND EXISTS (
    SELECT FROM unnest($1::text[], $2::smallint[], $3::text[]) AS l(queue, priority, tenant) CROSS JOIN LATERAL (
        SELECT FROM duetime.jobs j WHERE {plain_of_lane} AND j.due_at <= statement_timestamp() AND j.target = ANY ($5::text[])
        UNION ALL
        SELECT FROM duetime.jobs j WHERE {restricted_of_lane} AND j.due_at <= statement_timestamp() AND j.target = ANY ($5::text[])
        LIMIT 1) j
    WHERE l.queue = q.name);

-- name: due_jobs
-- For a dispatcher: due jobs of each lane, and the next that falls due. $1 queues, $2 priorities, $3 lower bounds, $4 tenants, $5 segments of
-- ids, $6 prefetch in microseconds, $7 limit. The lower bounds hold only for jobs that need no permit.
SELECT j.is_due, j.id, j.attempt, l.queue, l.priority, l.tenant, j.due_at, j.needs_permit
FROM unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::text[]) WITH ORDINALITY AS l(queue, priority, low, tenant, place)
CROSS JOIN LATERAL (
    (SELECT true AS is_due, j.id, j.attempt, j.due_at, false AS needs_permit FROM duetime.jobs j
        WHERE {plain_of_lane} AND j.due_at >= l.low AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND {of_segment}
        ORDER BY j.due_at LIMIT $7::bigint)
    UNION ALL
    (SELECT false AS is_due, j.id, j.attempt, j.due_at, false AS needs_permit FROM duetime.jobs j
        WHERE {plain_of_lane} AND j.due_at > statement_timestamp() + $6::bigint * interval '1 microsecond' AND {of_segment}
        ORDER BY j.due_at LIMIT 1)
    UNION ALL
    (SELECT true AS is_due, j.id, j.attempt, j.due_at, true AS needs_permit FROM duetime.jobs j
        WHERE {restricted_of_lane} AND j.due_at <= statement_timestamp() + $6::bigint * interval '1 microsecond' AND {of_segment}
        ORDER BY j.due_at LIMIT $7)
    UNION ALL
    (SELECT false AS is_due, j.id, j.attempt, j.due_at, true AS needs_permit FROM duetime.jobs j
        WHERE {restricted_of_lane} AND j.due_at > statement_timestamp() + $6::bigint * interval '1 microsecond' AND {of_segment}
        ORDER BY j.due_at LIMIT 1)) j
WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
ORDER BY l.place, j.due_at;
