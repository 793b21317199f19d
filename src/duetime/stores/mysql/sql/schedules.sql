-- Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs.

-- name: lock_schedule
SELECT {schedule} FROM duetime_schedules WHERE tenant = ?1 AND name = ?2 FOR UPDATE;

-- name: due_schedules
-- Parameters: segments, until, limit.
SELECT {schedule} FROM duetime_schedules FORCE INDEX (duetime_schedules_due)
WHERE paused = 0 AND next_fire_time <= ?2 AND segment IN ?1
ORDER BY next_fire_time, id LIMIT ?3;

-- name: record_withdrawal
-- Parameters: id, now, how many were withdrawn. The last fire is then the latest that can no longer be withdrawn.
UPDATE duetime_schedules SET runs = runs - ?3, last_fire_time = NULLIF(GREATEST(
  COALESCE(LEAST(last_fire_time, ?2), -1),
  COALESCE((SELECT MAX(j.fire_time) FROM duetime_jobs AS j WHERE j.schedule_id = ?1), -1)
), -1) WHERE id = ?1;

-- name: move_cursor
-- Parameters: id, version, cursor, next_fire_time, runs, latest fire or null.
SELECT queue, priority, tenant FROM duetime_schedules
WHERE id = ?1 AND version = ?2 AND next_fire_time = ?3 AND paused = 0 FOR UPDATE;
UPDATE duetime_schedules SET next_fire_time = ?4, runs = ?5, last_fire_time = NULLIF(GREATEST(COALESCE(last_fire_time, -1), COALESCE(?6, -1)), -1)
WHERE id = ?1 AND version = ?2 AND next_fire_time = ?3 AND paused = 0;

-- name: store_fire
-- The schedule's own row gives the job everything but its instants. Rows: schedule, id, fire_time, due_at, now.
INSERT INTO duetime_jobs ({planned}, created_at, limit_key)
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, s.limit_key
FROM (SELECT schedule_id, id, fire_time, due_at, created_at AS now FROM duetime_jobs WHERE FALSE
  UNION ALL VALUES /* rows */ (?, ?, ?, ?, ?)) AS f
STRAIGHT_JOIN duetime_schedules AS s ON s.id = f.schedule_id
WHERE NOT EXISTS (SELECT 1 FROM duetime_history AS h WHERE h.id = f.id)
ON DUPLICATE KEY UPDATE duetime_jobs.id = duetime_jobs.id;

-- name: store_skipped
-- Rows: as store_fire, then the reason.
INSERT INTO duetime_history ({planned}, created_at, limit_key, finished_at, error, state, attempt, failures, losses, cancel_requested)
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, s.limit_key, f.now, f.reason, 'skipped', 0, 0, 0, 0
FROM (SELECT schedule_id, id, fire_time, due_at, created_at AS now, error AS reason FROM duetime_jobs WHERE FALSE
  UNION ALL VALUES /* rows */ (?, ?, ?, ?, ?, ?)) AS f
STRAIGHT_JOIN duetime_schedules AS s ON s.id = f.schedule_id
WHERE NOT EXISTS (SELECT 1 FROM duetime_jobs AS j WHERE j.id = f.id)
ON DUPLICATE KEY UPDATE duetime_history.id = duetime_history.id;
