-- Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs.

-- name: get_schedule
SELECT {schedule} FROM schedules WHERE tenant = ?1 AND name = ?2;

-- name: get_schedule_by_id
SELECT {schedule} FROM schedules WHERE tenant = ?1 AND id = ?2;

-- name: list_schedules
-- To be followed by the conditions that apply, then `schedules_order`.
SELECT {schedule} FROM schedules WHERE tenant = :tenant;

-- name: schedules_after
AND name > :after;

-- name: schedules_if_text
AND instr(folded(name), folded(:text)) > 0;

-- name: schedules_if_label
AND labels IS NOT NULL AND has_label(labels, :label_key, :label_value);

-- name: schedules_order
ORDER BY name LIMIT :limit;

-- name: due_schedules
-- Parameters: JSON list of segments, until, limit.
SELECT {schedule} FROM schedules INDEXED BY schedules_due
WHERE paused = 0 AND next_fire_time <= ?2 AND segment IN (SELECT value FROM json_each(?1))
ORDER BY next_fire_time, id LIMIT ?3;

-- name: write_schedule
-- Parameters: the definition, version, segment, paused, pause_note, next_fire_time, now. A schedule that is replaced keeps its id.
INSERT INTO schedules ({definition}, version, segment, paused, pause_note, next_fire_time, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?25)
ON CONFLICT (tenant, name) DO UPDATE SET
  fires_when = ?4, target = ?5, target_spec = ?6, payload = ?7, policies = ?8, queue = ?9, priority = ?10, overlap = ?11, missed = ?12,
  jitter = ?13, start_at = ?14, end_at = ?15, max_runs = ?16, owner = ?17, labels = ?18, limit_key = ?19, version = ?20, paused = ?22,
  pause_note = ?23, next_fire_time = ?24, updated_at = ?25;

-- name: delete_schedule
DELETE FROM schedules WHERE id = ?1;

-- name: withdraw_jobs
-- Jobs that have not started and whose fire is in the future.
DELETE FROM jobs WHERE schedule_id = ?1 AND attempt = 0 AND state = 'pending' AND fire_time > ?2;

-- name: record_withdrawal
-- Parameters: id, now, how many were withdrawn. The last fire is then the latest that can no longer be withdrawn.
UPDATE schedules SET runs = runs - ?3, last_fire_time = nullif(max(
  coalesce(min(last_fire_time, ?2), -1),
  coalesce((SELECT max(j.fire_time) FROM jobs AS j WHERE j.schedule_id = ?1), -1)
), -1) WHERE id = ?1;

-- name: newest_version
-- Of any schedule that had this name.
SELECT coalesce(max(version), 0) FROM schedule_versions WHERE tenant = ?1 AND name = ?2;

-- name: record_version
-- Parameters: schedule, version, now, author, change.
INSERT INTO schedule_versions SELECT {definition}, ?2, paused, ?3, ?4, ?5 FROM schedules WHERE id = ?1;

-- name: list_versions
-- Parameters: tenant, name, below which version or null, limit.
SELECT * FROM schedule_versions WHERE tenant = ?1 AND name = ?2 AND (?3 IS NULL OR version < ?3) ORDER BY version DESC LIMIT ?4;

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
