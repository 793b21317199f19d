-- Everything in the database, for a copy. Parameters of a page: the key after which it begins, limit.

-- name: read_nodes
SELECT id, name, roles, version, started_at, lease_until, dead, has_left, NULL FROM duetime.nodes WHERE id > $1 ORDER BY id LIMIT $2;

-- name: read_queues
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period, NULL, NULL, NULL, spent_until FROM duetime.queues
WHERE name > $1 ORDER BY name LIMIT $2;

-- name: tenants_of_queues
-- $1 first and $2 last queue.
SELECT queue, tenant FROM duetime.queue_tenants WHERE queue BETWEEN $1 AND $2 ORDER BY queue, tenant;

-- name: read_limit_keys
SELECT name, spent_until, asks_at, served_at FROM duetime.limit_keys WHERE name > $1 ORDER BY name LIMIT $2;

-- name: read_schedules
SELECT * FROM duetime.schedules WHERE (tenant, name) > ($1, $2) ORDER BY tenant, name LIMIT $3;

-- name: read_versions
SELECT * FROM duetime.schedule_versions WHERE (tenant, name, version) > ($1, $2, $3) ORDER BY tenant, name, version LIMIT $4;

-- name: read_jobs
-- Live and past.
SELECT * FROM (
    (SELECT {draft}, state, attempt, failures, losses, {progressed},
        NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at, NULL::bytea AS result, error, NULL::text AS disposition,
        begun, waits_for, permit
    FROM duetime.jobs WHERE id > $1 ORDER BY id LIMIT $2)
    UNION ALL
    (SELECT {draft}, state, attempt, failures, losses, {progressed}, started_at, finished_at, result, error, disposition,
        false, NULL, NULL
    FROM duetime.history WHERE id > $1 ORDER BY id LIMIT $2)) j
ORDER BY id LIMIT $2;

-- name: read_attempts
-- $1 first and $2 last job.
SELECT job_id, attempt, node, ending, started_at, finished_at, error, result FROM duetime.attempts
WHERE job_id BETWEEN $1 AND $2 ORDER BY job_id, attempt, finished_at;

-- name: read_markers
-- $1 first and $2 last job.
SELECT job_id, key, nonce FROM duetime.once_markers WHERE job_id BETWEEN $1 AND $2 ORDER BY job_id, key;

-- name: read_records
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE (kind, tenant, key) > ($1, $2, $3) AND (expires_at IS NULL OR expires_at > clock_timestamp()) ORDER BY kind, tenant, key LIMIT $4;

-- name: add_day
SELECT duetime.add_day($1, $2);

-- name: raise_node_ids
-- $1 the highest that is used.
SELECT setval('duetime.nodes_id_seq', $1) FROM duetime.nodes_id_seq WHERE last_value <= $1;

-- name: raise_record_versions
SELECT setval('duetime.record_versions', $1) FROM duetime.record_versions WHERE last_value <= $1;
