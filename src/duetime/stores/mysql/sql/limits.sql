-- Limits, rates and permits.

-- name: lock_permits
-- Changes the row instead of only locking it: in a Galera cluster, transactions on two servers conflict only about rows that both change.
UPDATE duetime_counters SET value = value + 1 WHERE name = 'permits';

-- name: set_limits
-- Rows: target, max_running, count and period of the rate.
REPLACE INTO duetime_limits (target, max_running, rate_count, rate_period) VALUES /* rows */ (?, ?, ?, ?);

-- name: limits_of
-- Parameter: targets.
SELECT target, max_running, rate_count, rate_period FROM duetime_limits WHERE target IN ?1;

-- name: key_use
-- Rows: limit key.
SELECT w.name, (SELECT COUNT(DISTINCT permit) FROM duetime_jobs FORCE INDEX (duetime_jobs_permit) WHERE permit_name = CONCAT('holds ', w.name)),
  COALESCE(k.spent_until, 0), COALESCE(k.asks_at, 0), COALESCE(k.served_at, 0)
FROM (SELECT name FROM duetime_limit_keys WHERE FALSE UNION ALL VALUES /* rows */ (?)) AS w
LEFT JOIN duetime_limit_keys AS k ON k.name = w.name;

-- name: is_permit_in_use
-- Whether another running job holds it. Parameters: limit key, permit.
SELECT EXISTS (SELECT 1 FROM duetime_jobs WHERE permit_name = CONCAT('holds ', ?1) AND permit = ?2);

-- name: started_of_schedules
-- Jobs that have started and not finished. Rows: schedule.
SELECT schedule_id, id FROM duetime_jobs WHERE schedule_id IN /* firsts */ AND attempt > 0;

-- name: keep_key_use
-- Rows: limit key, spent_until, asks_at, served_at.
REPLACE INTO duetime_limit_keys (name, spent_until, asks_at, served_at) VALUES /* rows */ (?, ?, ?, ?);

-- name: wait
-- Rows: id, the permit's name.
UPDATE (SELECT id, waits_for AS name FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?)) AS w
STRAIGHT_JOIN duetime_jobs AS j FORCE INDEX (PRIMARY) ON j.id = w.id SET j.waits_for = w.name;

-- name: ask_to_stop
-- A job that is in the way of a later one. A retry that waits is due immediately, so that it can end. Parameters: id, now, reason.
SELECT queue, priority, CASE WHEN state = 'running' THEN due_at ELSE LEAST(due_at, ?2) END, tenant, node FROM duetime_jobs
WHERE id = ?1 AND cancel_requested = 0 FOR UPDATE;
UPDATE duetime_jobs SET cancel_requested = 1, error = ?3, waits_for = NULL,
  due_at = CASE WHEN state = 'running' THEN due_at ELSE LEAST(due_at, ?2) END
WHERE id = ?1 AND cancel_requested = 0;

-- name: best_waiting
-- The best jobs that wait for a permit. Parameters: its name, how many.
SELECT waits_for, id, queue, target, limit_key, overlap FROM duetime_jobs FORCE INDEX (duetime_jobs_permit)
WHERE permit_name = CONCAT('waits ', ?1) ORDER BY priority DESC, due_at LIMIT ?2 FOR UPDATE;

-- name: promote
-- Jobs that wait become claimable again, best first. Parameters: the permit's name, how many.
SELECT queue, priority, due_at, tenant FROM duetime_jobs FORCE INDEX (duetime_jobs_permit) WHERE permit_name = CONCAT('waits ', ?1)
ORDER BY priority DESC, due_at LIMIT ?2 FOR UPDATE;
UPDATE duetime_jobs FORCE INDEX (duetime_jobs_permit) SET waits_for = NULL WHERE permit_name = CONCAT('waits ', ?1) ORDER BY priority DESC, due_at LIMIT ?2;

-- name: promote_jobs
-- Rows: id.
UPDATE duetime_jobs FORCE INDEX (PRIMARY) SET waits_for = NULL WHERE id IN /* firsts */;
SELECT queue, priority, due_at, tenant FROM duetime_jobs FORCE INDEX (PRIMARY) WHERE id IN /* firsts */;

-- name: waited_for
-- Names of permits that jobs wait for, each with the target of one of them. Parameters: after which name, limit.
SELECT SUBSTR(permit_name, 7), MIN(target) FROM duetime_jobs WHERE permit_name > CONCAT('waits ', ?1)
GROUP BY permit_name ORDER BY permit_name LIMIT ?2;

-- name: forget_limit_keys
-- Whose starts are all earned again. Parameter: instant.
DELETE FROM duetime_limit_keys WHERE GREATEST(spent_until, asks_at, served_at) < ?1;
