-- Everything in the database, for a copy. Parameters of a page: the key after which it begins, limit.

-- name: read_nodes
SELECT id, name, roles, version, started_at, lease_until, dead, has_left, NULL FROM duetime_nodes WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: read_queues
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period, spent_until FROM duetime_queues
WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: tenants_of_queues
-- Parameters: first and last queue.
SELECT queue, tenant FROM duetime_queue_tenants WHERE queue BETWEEN ?1 AND ?2 ORDER BY queue, tenant;

-- name: read_limit_keys
SELECT name, spent_until, asks_at, served_at FROM duetime_limit_keys WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: read_schedules
-- Of a key with several columns, the server finds a range in the index only by single columns.
SELECT {schedule} FROM duetime_schedules WHERE tenant > ?1 OR tenant = ?1 AND name > ?2 ORDER BY tenant, name LIMIT ?3;

-- name: read_versions
SELECT * FROM duetime_schedule_versions WHERE tenant > ?1 OR tenant = ?1 AND (name > ?2 OR name = ?2 AND version > ?3)
ORDER BY tenant, name, version LIMIT ?4;

-- name: read_jobs
-- Live and past.
(SELECT {live}, begun, waits_for, permit FROM duetime_jobs WHERE id > ?1 ORDER BY id LIMIT ?2)
UNION ALL
(SELECT {past}, 0, NULL, NULL FROM duetime_history WHERE id > ?1 ORDER BY id LIMIT ?2)
ORDER BY id LIMIT ?2;

-- name: read_attempts
-- Parameters: first and last job.
SELECT job_id, attempt, node, ending, started_at, finished_at, error, result FROM duetime_attempts
WHERE job_id BETWEEN ?1 AND ?2 ORDER BY job_id, attempt;

-- name: read_markers
-- Parameters: first and last job.
SELECT job_id, marker, nonce FROM duetime_once_markers WHERE job_id BETWEEN ?1 AND ?2 ORDER BY job_id, marker;

-- name: read_records
-- Parameters: kind, tenant, key, limit, now.
SELECT kind, tenant, name, value, version, expires_at FROM duetime_records
WHERE (kind > ?1 OR kind = ?1 AND (tenant > ?2 OR tenant = ?2 AND name > ?3)) AND (expires_at IS NULL OR expires_at > ?5)
ORDER BY kind, tenant, name LIMIT ?4;
