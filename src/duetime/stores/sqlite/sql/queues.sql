-- Queues and their settings.

-- name: add_queue
INSERT INTO queues (name) VALUES (?1) ON CONFLICT (name) DO NOTHING;

-- name: queues
SELECT name, paused, pause_note, paused_at, max_running, rate_count, rate_period FROM queues ORDER BY name;

-- name: count_jobs
-- By queue: pending, due, running. Read from indexes alone. Parameter: now.
SELECT queue, sum(pending), sum(due), sum(running) FROM (
  SELECT queue, count(*) AS pending, sum(due_at <= ?1) AS due, 0 AS running FROM jobs INDEXED BY jobs_due
  WHERE state = 'pending' AND limit_key IS NULL AND overlap IS NULL GROUP BY queue
  UNION ALL
  SELECT queue, count(*), sum(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_restricted
  WHERE state = 'pending' AND waits_for IS NULL AND (limit_key IS NOT NULL OR overlap IS NOT NULL) GROUP BY queue
  UNION ALL
  SELECT queue, count(*), sum(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_waiting WHERE waits_for IS NOT NULL GROUP BY queue
  UNION ALL
  SELECT queue, 0, 0, count(*) FROM jobs INDEXED BY jobs_node WHERE node IS NOT NULL GROUP BY queue
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

-- name: spend_queue
UPDATE queues SET spent_until = ?2 WHERE name = ?1;
