-- Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs.

-- name: get_schedule
SELECT {schedule} FROM {schedules} WHERE tenant = ?1 AND name = ?2;

-- name: get_schedule_by_id
SELECT {schedule} FROM {schedules} WHERE tenant = ?1 AND id = ?2;

-- name: list_schedules
-- To be followed by the conditions that apply, then `schedules_order`.
SELECT {schedule} FROM {schedules} WHERE tenant = :tenant;

-- name: schedules_after
AND name > :after;

-- name: schedules_order
ORDER BY name LIMIT :limit;

-- name: create_schedule
-- Parameters: the definition, version, segment, paused, pause_note, next_fire_time, now.
INSERT INTO {schedules} ({definition}, version, segment, paused, pause_note, next_fire_time, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?25);

-- name: replace_schedule
-- The same parameters; the id, and with it the segment, are those of the stored schedule.
UPDATE {schedules} SET
  fires_when = ?4, target = ?5, target_spec = ?6, payload = ?7, policies = ?8, queue = ?9, priority = ?10, overlap = ?11, missed = ?12,
  jitter = ?13, start_at = ?14, end_at = ?15, max_runs = ?16, owner = ?17, labels = ?18, limit_key = ?19, version = ?20, segment = ?21, paused = ?22,
  pause_note = ?23, next_fire_time = ?24, updated_at = ?25
WHERE id = ?1 AND tenant = ?2 AND name = ?3;

-- name: delete_schedule
DELETE FROM {schedules} WHERE id = ?1;

-- name: withdraw_jobs
-- Jobs that have not started and whose fire is in the future.
DELETE FROM {jobs} WHERE schedule_id = ?1 AND attempt = 0 AND state = 'pending' AND fire_time > ?2;

-- name: newest_version
-- Of any schedule that had this name.
SELECT coalesce(max(version), 0) FROM {schedule_versions} WHERE tenant = ?1 AND name = ?2;

-- name: record_version
-- Parameters: schedule, version, now, author, change.
INSERT INTO {schedule_versions} SELECT {definition}, ?2, paused, ?3, ?4, ?5 FROM {schedules} WHERE id = ?1;

-- name: list_versions
-- Parameters: tenant, name, below which version or null, limit.
SELECT * FROM {schedule_versions} WHERE tenant = ?1 AND name = ?2 AND (?3 IS NULL OR version < ?3) ORDER BY version DESC LIMIT ?4;
