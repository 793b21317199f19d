-- Everything in the file, for a copy. Parameters of a page: the key after which it begins, limit.

-- name: read_nodes
SELECT id, name, roles, version, started_at, lease_until, dead, has_left, NULL FROM nodes WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: read_queues
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period, spent_until FROM queues
WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: tenants_of_queues
-- Parameters: first and last queue.
SELECT queue, tenant FROM queue_tenants WHERE queue BETWEEN ?1 AND ?2 ORDER BY queue, tenant;

-- name: read_limit_keys
SELECT name, spent_until, asks_at, served_at FROM limit_keys WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: read_schedules
SELECT {schedule} FROM schedules WHERE (tenant, name) > (?1, ?2) ORDER BY tenant, name LIMIT ?3;

-- name: read_versions
SELECT * FROM schedule_versions WHERE (tenant, name, version) > (?1, ?2, ?3) ORDER BY tenant, name, version LIMIT ?4;

-- name: read_jobs
-- Live and past.
SELECT * FROM (SELECT {live}, begun, waits_for, permit FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2)
UNION ALL
SELECT * FROM (SELECT {past}, 0, NULL, NULL FROM history WHERE id > ?1 ORDER BY id LIMIT ?2)
ORDER BY 1 LIMIT ?2;

-- name: read_attempts
-- Parameters: first and last job.
SELECT job_id, attempt, node, ending, started_at, finished_at, error, result FROM attempts
WHERE job_id BETWEEN ?1 AND ?2 ORDER BY job_id, attempt;

-- name: read_markers
-- Parameters: first and last job.
SELECT job_id, key, nonce FROM once_markers WHERE job_id BETWEEN ?1 AND ?2 ORDER BY job_id, key;

-- name: read_records
-- Parameters: kind, tenant, key, limit, now.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE (kind, tenant, key) > (?1, ?2, ?3) AND (expires_at IS NULL OR expires_at > ?5) ORDER BY kind, tenant, key LIMIT ?4;
