-- Retention, the schema, and the counter of changes.

-- name: prune_versions
-- Of schedules that were removed.
DELETE FROM {schedule_versions} WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM {schedules} AS s WHERE s.id = {schedule_versions}.id);
