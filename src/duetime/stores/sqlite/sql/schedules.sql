-- Definitions, cursors, and the step that turns a cursor into jobs.

-- name: get_schedule
SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels,
  gate
FROM schedules WHERE tenant = ?1 AND name = ?2;

-- name: get_schedule_by_id
SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels,
  gate
FROM schedules WHERE tenant = ?1 AND id = ?2;

-- name: list_schedules
-- To be followed by the conditions that apply, then `schedules_order`.
SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels,
  gate
FROM schedules WHERE tenant = :tenant;

-- name: schedules_after
AND name > :after;

-- name: schedules_if_paused
AND paused = :paused;

-- name: schedules_if_owner
AND owner = :owner;

-- name: schedules_if_target
AND target = :target;

-- name: schedules_if_queue
AND queue = :queue;

-- name: schedules_if_text
AND instr(folded(name), folded(:text)) > 0;

-- name: schedules_if_label
AND labels IS NOT NULL AND has_label(labels, :label_key, :label_value);

-- name: schedules_order
ORDER BY name LIMIT :limit;

-- name: due_schedules
-- Parameters: JSON list of segments, until, limit.
SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels,
  gate
FROM schedules INDEXED BY schedules_due
WHERE paused = 0 AND next_fire_time <= ?2 AND segment IN (SELECT value FROM json_each(?1))
ORDER BY next_fire_time, id LIMIT ?3;

-- name: insert_schedule
-- Parameters: as replace_schedule, and version.
INSERT INTO schedules (
  id, tenant, name, fires_when, target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at,
  max_runs, owner, labels, gate, segment, next_fire_time, created_at, updated_at, version, paused, runs
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?22, ?23, 0, 0);

-- name: replace_schedule
-- Of the parameters 1 and 20 go unused: the id stays, and with it the segment.
UPDATE schedules SET
  fires_when = ?4, target = ?5, target_spec = ?6, payload = ?7, policies = ?8, queue = ?9, priority = ?10, overlap = ?11, missed = ?12,
  jitter = ?13, start_at = ?14, end_at = ?15, max_runs = ?16, owner = ?17, labels = ?18, gate = ?19, next_fire_time = ?21,
  updated_at = ?22, version = version + 1
WHERE tenant = ?2 AND name = ?3;

-- name: pause_schedule
UPDATE schedules SET paused = 1, pause_note = ?2, updated_at = ?3, version = version + 1 WHERE id = ?1;

-- name: resume_schedule
UPDATE schedules SET paused = 0, pause_note = NULL, next_fire_time = ?2, updated_at = ?3, version = version + 1 WHERE id = ?1;

-- name: delete_schedule
DELETE FROM schedules WHERE id = ?1;

-- name: withdraw_jobs
-- Jobs that have not started and whose fire lies ahead.
DELETE FROM jobs WHERE schedule_id = ?1 AND attempt = 0 AND state <> 'running' AND fire_time > ?2;

-- name: record_withdrawal
-- Parameters: id, now, how many were withdrawn. The last fire is then the latest that can no longer be taken back.
UPDATE schedules SET runs = runs - ?3, last_fire_time = nullif(max(
  coalesce(min(last_fire_time, ?2), -1),
  coalesce((SELECT max(j.fire_time) FROM jobs AS j WHERE j.schedule_id = ?1), -1)
), -1) WHERE id = ?1;

-- name: move_cursor
-- Parameters: id, version, cursor, next_fire_time, runs, latest fire or null.
UPDATE schedules SET next_fire_time = ?4, runs = ?5, last_fire_time = nullif(max(coalesce(last_fire_time, -1), coalesce(?6, -1)), -1)
WHERE id = ?1 AND version = ?2 AND next_fire_time = ?3 AND paused = 0
RETURNING queue, priority;

-- name: store_fire
-- The schedule's own row gives the job everything but its instants.
INSERT INTO jobs ({planned}, created_at, gate, state)
WITH fires (schedule_id, id, fire_time, due_at, now) AS (VALUES /* rows */ (?, ?, ?, ?, ?))
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, s.gate, CASE WHEN s.gate IS NULL OR s.overlap IS NOT NULL THEN 'pending' ELSE 'gated' END
FROM fires AS f CROSS JOIN schedules AS s
WHERE s.id = f.schedule_id AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.id = f.id)
ON CONFLICT (id) DO NOTHING;

-- name: store_skipped
INSERT INTO history ({planned}, created_at, finished_at, error, state, attempt, failures, losses, cancel_requested)
WITH fires (schedule_id, id, fire_time, due_at, now, reason) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?))
SELECT
  f.id, s.tenant, s.id, s.name, f.fire_time, f.due_at, s.queue, s.priority, s.overlap, s.target, s.target_spec, s.payload, s.policies,
  s.owner, s.labels, f.now, f.now, f.reason, 'skipped', 0, 0, 0, 0
FROM fires AS f CROSS JOIN schedules AS s
WHERE s.id = f.schedule_id AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = f.id)
ON CONFLICT (id) DO NOTHING;
