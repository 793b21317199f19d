-- Retention, the schema, and what watchers compare.

-- name: prune_attempts
-- Of the same jobs as prune_jobs right after it: equal instants come in the order of their rows, so both find the same ones.
DELETE FROM attempts WHERE job_id IN (SELECT id FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: prune_jobs
DELETE FROM history WHERE rowid IN (SELECT rowid FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: prune_nodes
DELETE FROM nodes WHERE dead = 1 AND lease_until < ?1 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.node = nodes.id);

-- name: raise_pulse
UPDATE pulse SET count = count + 1;

-- name: read_pulse
SELECT count FROM pulse;

-- name: cancels
SELECT node, id FROM jobs WHERE cancel_requested = 1 AND node IS NOT NULL;

-- name: has_tables
SELECT
  EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'),
  EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table');

-- name: read_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: write_version
INSERT INTO schema_version (version) VALUES (?1);
