-- Retention, the schema, and the counter of changes.

-- name: finished_before
-- Ids of past jobs, oldest end first. Parameters: instant, limit.
SELECT id FROM history INDEXED BY history_finished WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2;

-- name: past_window
-- Parameters: end and row after which to begin, until when, limit.
SELECT rowid, id, target, finished_at FROM history INDEXED BY history_finished
WHERE (finished_at, rowid) > (?1, ?2) AND finished_at < ?3 ORDER BY finished_at, rowid LIMIT ?4;

-- name: forget_attempts
-- Rows of this and the following: id.
DELETE FROM attempts WHERE job_id IN (VALUES /* rows */ (?));

-- name: forget_markers
DELETE FROM once_markers WHERE job_id IN (VALUES /* rows */ (?));

-- name: forget_jobs
DELETE FROM history WHERE id IN (VALUES /* rows */ (?));

-- name: prune_nodes
DELETE FROM nodes WHERE dead = 1 AND lease_until < ?1 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.node = nodes.id);

-- name: raise_changes
UPDATE changes SET count = count + 1;

-- name: begin_to_write
-- Changes nothing, but takes the write lock: SQLite refuses a transaction that reads first when others write in between.
UPDATE changes SET count = count WHERE FALSE;

-- name: read_changes
SELECT count FROM changes;

-- name: cancels
SELECT node, id FROM jobs WHERE cancel_requested = 1 AND node > 0;

-- name: no_longer_live
-- Rows: id.
WITH awaited (id) AS (VALUES /* rows */ (?)) SELECT a.id FROM awaited AS a WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = a.id);

-- name: table_names
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: read_version
SELECT version, coalesce(compatible_from, version) FROM schema_version ORDER BY version DESC LIMIT 1;

-- name: write_version
INSERT INTO schema_version (version, compatible_from) VALUES (?1, ?2);

-- name: living_versions
SELECT name, version FROM nodes WHERE dead = 0 AND lease_until > ?1 ORDER BY id;
