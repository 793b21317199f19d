-- Queues and their settings.

-- name: add_queues
-- Rows: name.
INSERT INTO queues (name) VALUES /* rows */ (?) ON CONFLICT (name) DO NOTHING;

-- name: add_queue_tenants
-- Rows: tenant, queue.
INSERT INTO queue_tenants (tenant, queue) VALUES /* rows */ (?, ?) ON CONFLICT (tenant, queue) DO NOTHING;

-- name: queues
-- Parameters: the fields of model.limit.QueueFilter.
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period FROM queues
WHERE (NOT ?1 OR paused = 1 OR max_running IS NOT NULL OR rate_count IS NOT NULL)
  AND (?2 IS NULL OR EXISTS (SELECT 1 FROM queue_tenants WHERE tenant = ?2 AND queue = name)) AND (?3 IS NULL OR name = ?3) AND name > ?4
ORDER BY name LIMIT ?5;

-- name: lanes
-- Queue, priority and tenant of pending jobs that do not wait for a permit, found by one search of an index for each. Parameters: after which
-- queue, how many queues.
WITH RECURSIVE
  plain (queue, priority, tenant, more) AS (
    SELECT ?1, 99, '', ?2
    UNION ALL
    SELECT j.queue, j.priority, j.tenant, p.more - (j.queue <> p.queue) FROM plain AS p CROSS JOIN jobs AS j
    WHERE p.more >= 0 AND j.rowid = (
      SELECT rowid FROM jobs INDEXED BY jobs_due
      WHERE state = 'pending' AND limit_key IS NULL AND overlap IS NULL AND (queue, priority, tenant) > (p.queue, p.priority, p.tenant)
      ORDER BY queue, priority, tenant LIMIT 1)
  ),
  restricted (queue, priority, tenant, more) AS (
    SELECT ?1, 99, '', ?2
    UNION ALL
    SELECT j.queue, j.priority, j.tenant, r.more - (j.queue <> r.queue) FROM restricted AS r CROSS JOIN jobs AS j
    WHERE r.more >= 0 AND j.rowid = (
      SELECT rowid FROM jobs INDEXED BY jobs_restricted
      WHERE state = 'pending' AND waits_for IS NULL AND (limit_key IS NOT NULL OR overlap IS NOT NULL)
        AND (queue, priority, tenant) > (r.queue, r.priority, r.tenant)
      ORDER BY queue, priority, tenant LIMIT 1)
  )
SELECT queue, priority, tenant FROM plain WHERE more >= 0 AND queue > ?1
UNION
SELECT queue, priority, tenant FROM restricted WHERE more >= 0 AND queue > ?1;

-- name: count_jobs
-- By queue: pending, due, running. Parameters: now, tenant or NULL.
SELECT queue, sum(pending), sum(due), sum(running) FROM (
  SELECT queue, count(*) AS pending, sum(due_at <= ?1) AS due, 0 AS running FROM jobs INDEXED BY jobs_due
  WHERE state = 'pending' AND limit_key IS NULL AND overlap IS NULL AND (?2 IS NULL OR tenant = ?2) GROUP BY queue
  UNION ALL
  SELECT queue, count(*), sum(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_restricted
  WHERE state = 'pending' AND waits_for IS NULL AND (limit_key IS NOT NULL OR overlap IS NOT NULL)
    AND (?2 IS NULL OR tenant = ?2) GROUP BY queue
  UNION ALL
  SELECT queue, count(*), sum(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_waiting
  WHERE waits_for IS NOT NULL AND (?2 IS NULL OR tenant = ?2) GROUP BY queue
  UNION ALL
  SELECT queue, 0, 0, count(*) FROM jobs INDEXED BY jobs_node WHERE node IS NOT NULL AND (?2 IS NULL OR tenant = ?2) GROUP BY queue
) GROUP BY queue;

-- name: set_queue
INSERT INTO queues (name, paused, pause_note, paused_at, max_running, rate_count, rate_period) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET paused = ?2, pause_note = ?3, paused_at = ?4, max_running = ?5, rate_count = ?6, rate_period = ?7;

-- name: restricted_queues
-- With the number of running jobs where that is limited. Running jobs are few among the live, so the index of nodes finds them.
SELECT q.name, q.paused, q.pause_note, q.paused_at, q.max_running, q.rate_count, q.rate_period, q.spent_until,
  CASE WHEN q.max_running IS NULL THEN 0 ELSE
    (SELECT count(*) FROM jobs AS j INDEXED BY jobs_node WHERE j.node IS NOT NULL AND j.queue = q.name) END
FROM queues AS q INDEXED BY queues_restricted WHERE q.paused = 1 OR q.max_running IS NOT NULL OR q.rate_count IS NOT NULL;
