-- What was changed on a schedule, and by whom.

-- name: newest_version
-- Of whichever schedule had this name last.
SELECT coalesce(max(version), 0) FROM schedule_versions WHERE tenant = ?1 AND name = ?2;

-- name: note_version
-- A process of an older version, which numbers anew, may have left a gap or a number twice: the row of the latest change stays.
-- Parameters: schedule, how much to add to its version, now, author, change.
INSERT OR REPLACE INTO schedule_versions SELECT
  id, tenant, name, version + ?2, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels, gate,
  ?3, ?4, ?5
FROM schedules WHERE id = ?1;

-- name: list_versions
-- Parameters: tenant, name, below which version or null, limit.
SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels,
  gate, at, author, change
FROM schedule_versions WHERE tenant = ?1 AND name = ?2 AND (?3 IS NULL OR version < ?3) ORDER BY version DESC LIMIT ?4;

-- name: prune_versions
-- Of schedules that are gone.
DELETE FROM schedule_versions WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM schedules AS s WHERE s.id = schedule_versions.id);
