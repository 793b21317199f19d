-- Limits, rates and permits.

-- name: set_limits
-- Rows: target, max_running, count and period of the rate.
INSERT OR REPLACE INTO limits (target, max_running, rate_count, rate_period) VALUES /* rows */ (?, ?, ?, ?);

-- name: limits_of
-- Parameter: JSON list of targets.
SELECT target, max_running, rate_count, rate_period FROM limits WHERE target IN (SELECT value FROM json_each(?1));

-- name: key_use
-- Rows: limit key.
WITH wanted (name) AS (VALUES /* rows */ (?))
SELECT w.name, (SELECT count(DISTINCT permit) FROM jobs INDEXED BY jobs_permit WHERE limit_key = w.name AND permit IS NOT NULL),
  coalesce(k.spent_until, 0), coalesce(k.asks_at, 0), coalesce(k.served_at, 0)
FROM wanted AS w LEFT JOIN limit_keys AS k ON k.name = w.name;

-- name: is_permit_in_use
-- Whether another running job holds it. Parameters: limit key, permit.
SELECT EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_permit WHERE limit_key = ?1 AND permit = ?2 AND permit IS NOT NULL);

-- name: started_of_schedules
-- Jobs that have started and not finished. Rows: schedule.
WITH wanted (id) AS (VALUES /* rows */ (?))
SELECT j.schedule_id, j.id FROM wanted AS w CROSS JOIN jobs AS j INDEXED BY jobs_schedule WHERE j.schedule_id = w.id AND j.attempt > 0;

-- name: keep_key_use
-- Rows: limit key, spent_until, asks_at, served_at.
INSERT OR REPLACE INTO limit_keys (name, spent_until, asks_at, served_at) VALUES /* rows */ (?, ?, ?, ?);

-- name: wait
-- Rows: id, the permit's name.
UPDATE jobs SET waits_for = w.column2 FROM (VALUES /* rows */ (?, ?)) AS w WHERE jobs.id = w.column1;

-- name: ask_to_stop
-- A job that is in the way of a later one. A retry that waits is due immediately, so that it can end. Parameters: id, now, reason.
UPDATE jobs SET cancel_requested = 1, error = ?3, waits_for = NULL, due_at = CASE WHEN state = 'running' THEN due_at ELSE min(due_at, ?2) END
WHERE id = ?1 AND cancel_requested = 0
RETURNING queue, priority, due_at, tenant, node;

-- name: best_waiting
-- The best jobs that wait for a permit. Parameters: its name, how many.
SELECT waits_for, id, queue, target, limit_key, overlap FROM jobs INDEXED BY jobs_waiting WHERE waits_for = ?1
ORDER BY priority DESC, due_at LIMIT ?2;

-- name: promote
-- Jobs that wait become claimable again, best first. Parameters: the permit's name, how many.
UPDATE jobs SET waits_for = NULL
WHERE rowid IN (SELECT rowid FROM jobs INDEXED BY jobs_waiting WHERE waits_for = ?1 ORDER BY priority DESC, due_at LIMIT ?2)
RETURNING queue, priority, due_at, tenant;

-- name: promote_jobs
-- Rows: id.
UPDATE jobs SET waits_for = NULL WHERE id IN (VALUES /* rows */ (?)) RETURNING queue, priority, due_at, tenant;

-- name: waited_for
-- Names of permits that jobs wait for, each with the target of one of them. Parameters: after which name, limit.
WITH RECURSIVE found (name, more) AS (
  SELECT (SELECT min(waits_for) FROM jobs INDEXED BY jobs_waiting WHERE waits_for > ?1), ?2
  UNION ALL
  SELECT (SELECT min(waits_for) FROM jobs INDEXED BY jobs_waiting WHERE waits_for > f.name), f.more - 1
  FROM found AS f WHERE f.name IS NOT NULL AND f.more > 1
)
SELECT f.name, (SELECT target FROM jobs INDEXED BY jobs_waiting WHERE waits_for = f.name LIMIT 1) FROM found AS f WHERE f.name IS NOT NULL;

-- name: forget_limit_keys
-- Whose starts are all earned again. Parameter: instant.
DELETE FROM limit_keys WHERE max(spent_until, asks_at, served_at) < ?1;
