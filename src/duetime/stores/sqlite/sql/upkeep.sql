-- Retention, the schema, and what watchers compare.

-- name: prune_attempts
-- Of the same jobs as prune_jobs right after it: equal instants come in the order of their rows, so both find the same ones.
DELETE FROM attempts WHERE job_id IN (SELECT id FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: prune_marks
DELETE FROM marks WHERE job_id IN (SELECT id FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: prune_past_gates
DELETE FROM past_gates WHERE job_id IN (SELECT id FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: prune_jobs
DELETE FROM history WHERE rowid IN (SELECT rowid FROM history WHERE finished_at < ?1 ORDER BY finished_at, rowid LIMIT ?2);

-- name: past_window
-- Parameters: end and row after which to begin, until when, limit.
SELECT rowid, id, target, finished_at FROM history INDEXED BY history_finished
WHERE (finished_at, rowid) > (?1, ?2) AND finished_at < ?3 ORDER BY finished_at, rowid LIMIT ?4;

-- name: forget_attempts
-- Rows of this and the following: id.
DELETE FROM attempts WHERE job_id IN (VALUES /* rows */ (?));

-- name: forget_marks
DELETE FROM marks WHERE job_id IN (VALUES /* rows */ (?));

-- name: forget_past_gates
DELETE FROM past_gates WHERE job_id IN (VALUES /* rows */ (?));

-- name: forget_jobs
DELETE FROM history WHERE id IN (VALUES /* rows */ (?));

-- name: prune_nodes
DELETE FROM nodes WHERE dead = 1 AND lease_until < ?1 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.node = nodes.id);

-- name: raise_pulse
UPDATE pulse SET count = count + 1;

-- name: begin_to_write
-- Changes nothing, but waits its turn to write: a transaction that reads first is refused when others write in between.
UPDATE pulse SET count = count WHERE FALSE;

-- name: read_pulse
SELECT count FROM pulse;

-- name: cancels
SELECT node, id FROM jobs WHERE cancel_requested = 1 AND node > 0;

-- name: vanished
-- Which of these are no live jobs any more. Rows: id.
WITH awaited (id) AS (VALUES /* rows */ (?)) SELECT a.id FROM awaited AS a WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = a.id);

-- name: has_tables
-- Whether we are at home in this file, and whether somebody else's tables have names that we need.
SELECT
  EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'),
  EXISTS (
    SELECT 1 FROM sqlite_schema
    WHERE name IN ('pulse', 'jobs', 'history', 'attempts', 'queues', 'schedules', 'nodes', 'leases', 'past_gates', 'gates', 'marks', 'records', 'events',
      'schedule_versions')
  );

-- name: read_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: write_version
INSERT INTO schema_version (version) VALUES (?1);
