-- What was changed on a schedule, and by whom.

-- name: list_versions
SELECT * FROM duetime.schedule_versions
WHERE tenant = $1 AND name = $2 AND ($3::bigint IS NULL OR version < $3) ORDER BY version DESC LIMIT $4;

-- name: prune_versions
-- Of schedules that are gone.
DELETE FROM duetime.schedule_versions v WHERE v.at < $1 AND NOT EXISTS (SELECT FROM duetime.schedules s WHERE s.id = v.id OFFSET 0);
