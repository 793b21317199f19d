-- Queues and their settings.

-- name: add_queues
-- Rows: name. Known names are not locked.
INSERT INTO duetime_queues (name)
SELECT w.name FROM (SELECT name FROM duetime_queues WHERE FALSE UNION ALL VALUES /* rows */ (?)) AS w
WHERE NOT EXISTS (SELECT 1 FROM duetime_queues AS q WHERE q.name = w.name)
ON DUPLICATE KEY UPDATE duetime_queues.name = duetime_queues.name;

-- name: add_queue_tenants
-- Rows: tenant, queue.
INSERT INTO duetime_queue_tenants (tenant, queue)
SELECT w.tenant, w.queue FROM (SELECT tenant, queue FROM duetime_queue_tenants WHERE FALSE UNION ALL VALUES /* rows */ (?, ?)) AS w
WHERE NOT EXISTS (SELECT 1 FROM duetime_queue_tenants AS t WHERE t.tenant = w.tenant AND t.queue = w.queue)
ON DUPLICATE KEY UPDATE duetime_queue_tenants.tenant = duetime_queue_tenants.tenant;

-- name: queues
-- Parameters: the fields of model.limit.QueueFilter.
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period FROM duetime_queues
WHERE (NOT ?1 OR restricted = 1)
  AND (?2 IS NULL OR EXISTS (SELECT 1 FROM duetime_queue_tenants WHERE tenant = ?2 AND queue = name)) AND (?3 IS NULL OR name = ?3) AND name > ?4
ORDER BY name LIMIT ?5;

-- name: lanes
-- Queue, priority and tenant of pending jobs that do not wait for a permit, of so many queues. The server jumps from group to group in the
-- index. Parameters: after which queue, how many queues.
SELECT DISTINCT queue, priority, tenant FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
WHERE claimable = 0 AND queue > ?1 AND queue <= COALESCE((SELECT MAX(queue) FROM (SELECT DISTINCT queue FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 0 AND queue > ?1 ORDER BY queue LIMIT ?2) AS p), '')
UNION
SELECT DISTINCT queue, priority, tenant FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
WHERE claimable = 1 AND queue > ?1 AND queue <= COALESCE((SELECT MAX(queue) FROM (SELECT DISTINCT queue FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 1 AND queue > ?1 ORDER BY queue LIMIT ?2) AS p), '');

-- name: count_jobs
-- By queue: pending, due, running. Parameters: now, tenant or NULL.
SELECT queue, SUM(state = 'pending'), SUM(state = 'pending' AND due_at <= ?1), SUM(node IS NOT NULL) FROM duetime_jobs
WHERE ?2 IS NULL OR tenant = ?2 GROUP BY queue;

-- name: set_queue
INSERT INTO duetime_queues (name, paused, pause_note, paused_at, max_running, rate_count, rate_period) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON DUPLICATE KEY UPDATE paused = ?2, pause_note = ?3, paused_at = ?4, max_running = ?5, rate_count = ?6, rate_period = ?7;

-- name: restricted_queues
-- With the number of running jobs where that is limited.
SELECT q.name, q.paused, q.pause_note, q.paused_at, q.max_running, q.rate_count, q.rate_period, q.spent_until,
  CASE WHEN q.max_running IS NULL THEN 0 ELSE
    (SELECT COUNT(*) FROM duetime_jobs AS j FORCE INDEX (duetime_jobs_due) WHERE j.claimable = 2 AND j.queue = q.name) END
FROM duetime_queues AS q WHERE q.restricted = 1;
