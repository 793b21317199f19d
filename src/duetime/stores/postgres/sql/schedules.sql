-- Schedules: definitions, cursors, and the step that turns a cursor into jobs.
--
-- Whoever needs both locks the schedule's row before its jobs.

-- name: insert_schedules
-- $1..$17 the definitions, $18 ids, $19 segments, $20 next_fire_times, $21 authors. No row of one whose name is taken.
WITH x AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[], $8::text[],
            $9::smallint[], $10::text[], $11::bigint[], $12::timestamptz[], $13::timestamptz[], $14::bigint[], $15::text[], $16::bytea[],
            $17::text[], $18::uuid[], $19::smallint[], $20::timestamptz[], $21::text[])
        AS x(tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap, jitter, start_at, end_at, max_runs,
            owner, labels, gate, id, segment, next_fire_time, author)),
    s AS (
        INSERT INTO duetime.schedules (id, tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap,
            jitter, start_at, end_at, max_runs, owner, labels, gate, segment, next_fire_time, created_at, updated_at, version)
        SELECT x.id, x.tenant, x.name, x.definition, x.target, x.target_spec, x.payload, x.policies, x.queue, x.priority, x.overlap,
            x.jitter, x.start_at, x.end_at, x.max_runs, x.owner, x.labels, x.gate, x.segment, x.next_fire_time,
            statement_timestamp(), statement_timestamp(), -- one instant, which the two defaults would not be
            1 + coalesce((SELECT max(v.version) FROM duetime.schedule_versions v WHERE v.tenant = x.tenant AND v.name = x.name), 0)
        FROM x ON CONFLICT DO NOTHING RETURNING *)
SELECT n.* FROM s JOIN x ON x.id = s.id CROSS JOIN LATERAL duetime.noted(ROW(s.*)::duetime.schedules, x.author, 'created') n;

-- name: replace_schedule
-- $1..$17 the definition without its id, $18 next_fire_time, $19 the version expected, or NULL for any.
UPDATE duetime.schedules SET definition = $3, target = $4, target_spec = $5, payload = $6, policies = $7, queue = $8, priority = $9,
    overlap = $10, jitter = $11, start_at = $12, end_at = $13, max_runs = $14, owner = $15, labels = $16, gate = $17, next_fire_time = $18,
    version = version + 1, updated_at = clock_timestamp()
WHERE tenant = $1 AND name = $2 AND ($19::bigint IS NULL OR version = $19) RETURNING id;

-- name: lock_schedules
-- $1 tenants, $2 names, $3 the versions expected, or NULL for any. In the order in which `fire` locks them.
WITH x AS MATERIALIZED (SELECT k.id, x.version FROM unnest($1::text[], $2::text[], $3::bigint[]) AS x(tenant, name, version)
    CROSS JOIN LATERAL (SELECT k.id FROM duetime.schedules k WHERE k.tenant = x.tenant AND k.name = x.name LIMIT 1) k ORDER BY k.id)
SELECT s.tenant, s.name, s.id FROM x CROSS JOIN LATERAL (
    SELECT s.tenant, s.name, s.id FROM duetime.schedules s
    WHERE s.id = x.id AND (x.version IS NULL OR s.version = x.version) LIMIT 1 FOR UPDATE) s;

-- name: pause_schedules
-- $1 schedules, $2 notes.
UPDATE duetime.schedules s SET paused = true, pause_note = x.note, version = version + 1, updated_at = clock_timestamp()
FROM unnest($1::uuid[], $2::text[]) AS x(id, note) WHERE s.id = x.id AND s.id = ANY ($1);

-- name: resume_schedules
-- $1 tenants, $2 names, $3 cursors, $4 authors, $5 the versions expected, or NULL for any.
WITH u AS (UPDATE duetime.schedules s
    SET paused = false, pause_note = NULL, next_fire_time = x.cursor, version = s.version + 1, updated_at = clock_timestamp()
    FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[]) AS x(tenant, name, cursor, author, version)
    WHERE s.tenant = x.tenant AND s.name = x.name AND s.tenant = ANY ($1) AND s.name = ANY ($2)
        AND s.paused AND (x.version IS NULL OR s.version = x.version) RETURNING s AS schedule, x.author)
SELECT n.* FROM u CROSS JOIN LATERAL duetime.noted(u.schedule, u.author, 'resumed') n;

-- name: withdraw_jobs
-- $1 schedules. Takes back what has not started and lies ahead.
WITH gone AS (DELETE FROM duetime.jobs
        WHERE schedule_id = ANY ($1::uuid[]) AND attempt = 0 AND state = 'pending' AND fire_time > statement_timestamp() RETURNING schedule_id),
    counted AS MATERIALIZED (SELECT schedule_id, count(*) AS withdrawn FROM gone GROUP BY schedule_id)
SELECT x.id, coalesce(c.withdrawn, 0) AS withdrawn, statement_timestamp() AS moment
FROM unnest($1::uuid[]) AS x(id) LEFT JOIN counted c ON c.schedule_id = x.id;

-- name: record_withdrawals
-- $1 schedules, $2 jobs withdrawn of each, $3 authors, $4 when, $5 what was changed. last_fire_time becomes the latest fire that can no
-- longer be taken back. A statement of its own: it must see the jobs that were claimed while the withdrawal waited for their rows.
WITH u AS (UPDATE duetime.schedules s SET runs = s.runs - x.withdrawn, last_fire_time = greatest(
        CASE WHEN s.last_fire_time > $4 THEN $4 ELSE s.last_fire_time END, (SELECT max(j.fire_time) FROM duetime.jobs j WHERE j.schedule_id = x.id))
    FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS x(id, withdrawn, author) WHERE s.id = x.id AND s.id = ANY ($1)
    RETURNING s AS schedule, x.author)
SELECT n.* FROM u CROSS JOIN LATERAL duetime.noted(u.schedule, u.author, $5) n;

-- name: delete_schedules
DELETE FROM duetime.schedules WHERE id = ANY ($1::uuid[]);

-- name: get_schedule
SELECT * FROM duetime.schedules WHERE tenant = $1 AND name = $2;

-- name: get_schedules
-- $1 tenants, $2 names.
SELECT s.* FROM unnest($1::text[], $2::text[]) AS x(tenant, name)
CROSS JOIN LATERAL (SELECT * FROM duetime.schedules s WHERE s.tenant = x.tenant AND s.name = x.name LIMIT 1) s;

-- name: get_schedule_by_id
SELECT * FROM duetime.schedules WHERE tenant = $1 AND id = $2;

-- name: due_schedules
SELECT * FROM duetime.schedules
WHERE NOT paused AND next_fire_time <= $2 AND segment = ANY ($1::smallint[]) ORDER BY next_fire_time, id LIMIT $3;

-- name: fire
-- Firings: $1 schedules, $2 versions, $3 cursors, $4 next cursors, $5 runs, $6 latest fires. Their fires: $7 schedules, $8 ids,
-- $9 fire times, $10 due, $11 reasons to skip; $12, $13 the least and the greatest id.
-- Answers how many firings were applied, then the lanes of the new jobs with their earliest due times.
-- The cursor is compared by IS NOT DISTINCT FROM because "=" would tempt the planner to the index of cursors, where thousands are equal.
WITH s AS MATERIALIZED (
        SELECT k.tid, x.id, x.following, x.runs, x.latest
        FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::timestamptz[])
            AS x(id, version, cursor, following, runs, latest) ORDER BY id) x
        CROSS JOIN LATERAL (
            SELECT k.ctid AS tid FROM duetime.schedules k
            WHERE k.id = x.id AND k.version = x.version AND k.next_fire_time IS NOT DISTINCT FROM x.cursor AND NOT k.paused LIMIT 1 FOR UPDATE) k),
    u AS (UPDATE duetime.schedules k
        SET next_fire_time = s.following, runs = s.runs, last_fire_time = greatest(k.last_fire_time, s.latest)
        FROM s WHERE k.ctid = ANY (ARRAY(SELECT tid FROM s)) AND k.id = s.id
        RETURNING k.id, k.tenant, k.name, k.queue, k.priority, k.overlap, k.target, k.target_spec, k.payload, k.policies, k.owner, k.labels, k.gate),
    f AS MATERIALIZED (
        SELECT y.id, u.tenant, u.id AS schedule_id, u.name AS schedule, y.fire_time, y.due_at, u.queue, u.priority, u.overlap, u.target,
            u.target_spec, u.payload, u.policies, u.owner, u.labels, u.gate, y.reason
        FROM unnest($7::uuid[], $8::uuid[], $9::timestamptz[], $10::timestamptz[], $11::text[]) AS y(schedule, id, fire_time, due_at, reason)
        JOIN u ON u.id = y.schedule
        WHERE CASE WHEN (SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $12::uuid AND h.id <= $13::uuid
                AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour'))
            THEN NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = y.id
                AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)
            ELSE true END),
    n AS (INSERT INTO duetime.jobs ({planned}, gate)
        SELECT {planned}, gate FROM f WHERE reason IS NULL
        ON CONFLICT DO NOTHING RETURNING queue, priority, due_at),
    k AS (INSERT INTO duetime.history ({planned}, gate, state, error, finished_at)
        SELECT {planned}, gate, 'skipped', reason, clock_timestamp() FROM f
        WHERE reason IS NOT NULL AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = f.id OFFSET 0)),
    q AS (INSERT INTO duetime.queues (name) SELECT DISTINCT queue FROM f
        WHERE NOT EXISTS (SELECT FROM duetime.queues q WHERE q.name = f.queue) ON CONFLICT DO NOTHING)
SELECT count(*) AS applied, NULL::text AS queue, NULL::smallint AS priority, NULL::timestamptz AS due_at FROM u
UNION ALL SELECT NULL, queue, priority, min(due_at) FROM n GROUP BY queue, priority;
