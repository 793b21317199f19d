-- Schedules: definitions, cursors, and the step that turns a cursor into jobs.
--
-- A transaction that needs both locks the schedule's row before its jobs.

-- name: insert_schedules
-- $1..$20 the columns of a schedule, $21 ids, $22 segments, $23 authors. No row for a name that is taken. The version continues that of earlier
-- schedules of the name; if one of these is removed at the same time, the version is taken, too: a unique violation.
WITH x AS MATERIALIZED (
        SELECT * FROM unnest({schedule_arrays}, $21::uuid[], $22::smallint[], $23::text[]) AS x({schedule}, id, segment, author)),
    s AS (INSERT INTO duetime.schedules ({schedule}, id, segment, created_at, updated_at, version)
        SELECT {x.schedule}, x.id, x.segment, statement_timestamp(), statement_timestamp(),
            1 + coalesce((SELECT max(v.version) FROM duetime.schedule_versions v WHERE v.tenant = x.tenant AND v.name = x.name), 0)
        FROM x ON CONFLICT DO NOTHING RETURNING *),
    v AS (INSERT INTO duetime.schedule_versions SELECT s.*, s.updated_at, x.author, 'created' FROM s JOIN x ON x.id = s.id)
SELECT * FROM s;

-- name: lock_schedules
-- $1 tenants, $2 names, $3 expected versions. Locks in the order in which `fire` does.
WITH x AS MATERIALIZED (SELECT k.id, x.version FROM unnest($1::text[], $2::text[], $3::bigint[]) AS x(tenant, name, version)
    CROSS JOIN LATERAL (SELECT k.id FROM duetime.schedules k WHERE k.tenant = x.tenant AND k.name = x.name LIMIT 1) k ORDER BY k.id)
SELECT s.* FROM x CROSS JOIN LATERAL (
    SELECT * FROM duetime.schedules s WHERE s.id = x.id AND s.version = x.version LIMIT 1 FOR UPDATE) s;

-- name: update_schedules
-- $1..$20 the columns of a schedule, $21 ids.
UPDATE duetime.schedules s SET definition = x.definition, target = x.target, target_spec = x.target_spec, payload = x.payload,
    policies = x.policies, queue = x.queue, priority = x.priority, overlap = x.overlap, jitter = x.jitter, start_at = x.start_at,
    end_at = x.end_at, max_runs = x.max_runs, owner = x.owner, labels = x.labels, limit_key = x.limit_key,
    next_fire_time = x.next_fire_time, paused = x.paused, pause_note = x.pause_note
FROM unnest({schedule_arrays}, $21::uuid[]) AS x({schedule}, id) WHERE s.id = x.id AND s.id = ANY ($21);

-- name: withdraw_jobs
-- $1 schedules. Deletes their jobs that have not started and whose fire time is in the future.
WITH withdrawn AS (DELETE FROM duetime.jobs
        WHERE schedule_id = ANY ($1::uuid[]) AND attempt = 0 AND state = 'pending' AND fire_time > statement_timestamp() RETURNING schedule_id),
    counted AS MATERIALIZED (SELECT schedule_id, count(*) AS withdrawn FROM withdrawn GROUP BY schedule_id)
SELECT x.id, coalesce(c.withdrawn, 0) AS withdrawn, statement_timestamp() AS moment
FROM unnest($1::uuid[]) AS x(id) LEFT JOIN counted c ON c.schedule_id = x.id;

-- name: record_changes
-- $1 schedules, $2 jobs withdrawn of each, $3 authors, $4 changes, $5 the time of the withdrawal. last_fire_time becomes the latest fire that can
-- no longer be withdrawn. A statement of its own: it must see the jobs that were claimed while the withdrawal waited for their rows.
WITH u AS (UPDATE duetime.schedules s SET version = s.version + 1, updated_at = clock_timestamp(), runs = s.runs - x.withdrawn,
        last_fire_time = greatest(CASE WHEN s.last_fire_time > $5::timestamptz THEN $5 ELSE s.last_fire_time END,
            (SELECT max(j.fire_time) FROM duetime.jobs j WHERE j.schedule_id = x.id))
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[]) AS x(id, withdrawn, author, change) WHERE s.id = x.id AND s.id = ANY ($1)
    RETURNING s.*, s.updated_at AS at, x.author, x.change),
    v AS (INSERT INTO duetime.schedule_versions SELECT * FROM u)
SELECT * FROM u;

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

-- name: list_versions
SELECT * FROM duetime.schedule_versions
WHERE tenant = $1 AND name = $2 AND ($3::bigint IS NULL OR version < $3) ORDER BY version DESC LIMIT $4;

-- name: due_schedules
SELECT * FROM duetime.schedules
WHERE NOT paused AND next_fire_time <= $2 AND segment = ANY ($1::smallint[]) ORDER BY next_fire_time, id LIMIT $3;

-- name: fire
-- Firings: $1 schedules, $2 versions, $3 cursors, $4 next cursors, $5 runs, $6 latest fires. Their fires: $7 schedules, $8 ids,
-- $9 fire times, $10 due, $11 reasons to skip; $12, $13 the least and the greatest id.
-- Returns how many firings were applied, then the lanes of the new jobs with their earliest due times.
-- The cursor is compared by IS NOT DISTINCT FROM: with "=" the planner might choose the index of cursors, where thousands are equal.
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
        RETURNING k.id, k.tenant, k.name, k.queue, k.priority, k.overlap, k.target, k.target_spec, k.payload, k.policies, k.owner, k.labels, k.limit_key),
    f AS MATERIALIZED (
        SELECT y.id, u.tenant, u.id AS schedule_id, u.name AS schedule, y.fire_time, y.due_at, u.queue, u.priority, u.overlap, u.target,
            u.target_spec, u.payload, u.policies, u.owner, u.labels, u.limit_key, y.reason
        FROM unnest($7::uuid[], $8::uuid[], $9::timestamptz[], $10::timestamptz[], $11::text[]) AS y(schedule, id, fire_time, due_at, reason)
        JOIN u ON u.id = y.schedule
        WHERE CASE WHEN (SELECT EXISTS (SELECT FROM duetime.history h WHERE h.id >= $12::uuid AND h.id <= $13::uuid
                AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour'))
            THEN NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = y.id
                AND h.finished_at > statement_timestamp() - interval '1 day' AND h.finished_at < statement_timestamp() + interval '1 hour' OFFSET 0)
            ELSE true END),
    n AS (INSERT INTO duetime.jobs ({planned}, limit_key)
        SELECT {planned}, limit_key FROM f WHERE reason IS NULL
        ON CONFLICT DO NOTHING RETURNING queue, priority, due_at, tenant),
    k AS (INSERT INTO duetime.history ({planned}, limit_key, state, error, finished_at)
        SELECT {planned}, limit_key, 'skipped', reason, clock_timestamp() FROM f
        WHERE reason IS NOT NULL AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = f.id OFFSET 0)),
    q AS (INSERT INTO duetime.queues (name) SELECT DISTINCT queue FROM f
        WHERE NOT EXISTS (SELECT FROM duetime.queues q WHERE q.name = f.queue) ON CONFLICT DO NOTHING),
    t AS (INSERT INTO duetime.queue_tenants (tenant, queue) SELECT DISTINCT tenant, queue FROM f
        WHERE NOT EXISTS (SELECT FROM duetime.queue_tenants t WHERE t.tenant = f.tenant AND t.queue = f.queue) ON CONFLICT DO NOTHING)
SELECT count(*) AS applied, NULL::text AS queue, NULL::smallint AS priority, NULL::timestamptz AS due_at, NULL::text AS tenant FROM u
UNION ALL SELECT NULL, queue, priority, min(due_at), tenant FROM n GROUP BY queue, priority, tenant;
