-- Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs.

-- name: lock_schedule
-- As get_schedule; a store with concurrent transactions locks the row.
SELECT {schedule} FROM schedules WHERE tenant = ?1 AND name = ?2;

-- name: schedules_if_text
AND instr(folded(name), folded(:text)) > 0;

-- name: schedules_if_label
AND labels IS NOT NULL AND has_label(labels, :label_key, :label_value);

-- name: due_schedules
-- Parameters: JSON list of segments, until, limit.
SELECT {schedule} FROM schedules INDEXED BY schedules_due
WHERE paused = 0 AND next_fire_time <= ?2 AND segment IN (SELECT value FROM json_each(?1))
ORDER BY next_fire_time, id LIMIT ?3;

-- name: record_withdrawal
-- Parameters: id, now, how many were withdrawn. The last fire is then the latest that can no longer be withdrawn.
UPDATE schedules SET runs = runs - ?3, last_fire_time = nullif(max(
  coalesce(min(last_fire_time, ?2), -1),
  coalesce((SELECT max(j.fire_time) FROM jobs AS j WHERE j.schedule_id = ?1), -1)
), -1) WHERE id = ?1;

-- name: move_cursor
-- Parameters: id, version, cursor, next_fire_time, runs, latest fire or null.
UPDATE schedules SET next_fire_time = ?4, runs = ?5, last_fire_time = nullif(max(coalesce(last_fire_time, -1), coalesce(?6, -1)), -1)
WHERE id = ?1 AND version = ?2 AND next_fire_time = ?3 AND paused = 0
RETURNING queue, priority, tenant;

-- name: store_fire
-- The schedule's own row gives the job everything but its instants. Rows: schedule, id, fire_time, due_at, now.
INSERT INTO jobs ({planned}, created_at, limit_key)
WITH fires (schedule_id, id, fire_time, due_at, now) AS (VALUES /* rows */ (?, ?, ?, ?, ?))
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, s.limit_key
FROM fires AS f CROSS JOIN schedules AS s
WHERE s.id = f.schedule_id AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.id = f.id)
ON CONFLICT (id) DO NOTHING;

-- name: store_skipped
-- Rows: as store_fire, then the reason.
INSERT INTO history ({planned}, created_at, limit_key, finished_at, error, state, attempt, failures, losses, cancel_requested)
WITH fires (schedule_id, id, fire_time, due_at, now, reason) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?))
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, s.limit_key, f.now, f.reason, 'skipped', 0, 0, 0, 0
FROM fires AS f CROSS JOIN schedules AS s
WHERE s.id = f.schedule_id AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = f.id)
ON CONFLICT (id) DO NOTHING;
