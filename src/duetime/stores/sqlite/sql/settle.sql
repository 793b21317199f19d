-- From running to what was decided. Every statement names the attempt: a late finisher changes nothing.
-- Statements whose rows are counted do not begin with WITH: sqlite3 does not count theirs.

-- name: frees_permits
-- Whether jobs wait for permits, and whether a queue has a limit.
SELECT
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_waiting WHERE waits_for IS NOT NULL),
  EXISTS (SELECT 1 FROM queues INDEXED BY queues_restricted WHERE max_running IS NOT NULL);

-- name: ending
-- Jobs that still run under these attempts. Rows: id, attempt.
WITH ended (id, attempt) AS (VALUES /* rows */ (?, ?))
SELECT j.id, j.target, j.limit_key, j.permit, j.schedule_id, j.queue, j.priority, j.tenant, j.overlap, 0, j.attempt
FROM ended AS e CROSS JOIN jobs AS j WHERE j.id = e.id AND j.attempt = e.attempt AND j.state = 'running';

-- name: settle_final
-- A decision sent twice in one batch is written once; the row count tells how many were. A requested cancellation has stored its reason.
INSERT INTO history
WITH decided (id, attempt, state, failures, losses, started_at, finished_at, result, error) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?))
SELECT {j.draft}, d.state, j.attempt, d.failures, d.losses, {j.lived}, d.started_at, d.finished_at, d.result,
  coalesce(CASE WHEN d.state = 'cancelled' AND j.cancel_requested THEN j.error END, d.error), NULL
FROM decided AS d CROSS JOIN jobs AS j WHERE j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
ON CONFLICT (id) DO NOTHING;

-- name: settle_delete
DELETE FROM jobs WHERE rowid IN (
  WITH decided (id, attempt) AS (VALUES /* rows */ (?, ?))
  SELECT j.rowid FROM decided AS d CROSS JOIN jobs AS j WHERE j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
);

-- name: settle_pending
-- Parameters: id, attempt, due_at, failures, losses, error.
UPDATE jobs SET state = 'pending', due_at = ?3, failures = ?4, losses = ?5, error = coalesce(CASE WHEN cancel_requested THEN error END, ?6, error),
  node = NULL, claimed_at = NULL, begun = 0, permit = NULL
WHERE id = ?1 AND attempt = ?2 AND state = 'running'
RETURNING queue, priority, due_at, tenant;

-- name: settle_external
-- Repeated, it does not move the deadline. Parameters: id, attempt, deadline, failures, losses.
UPDATE jobs SET node = 0, due_at = ?3, failures = ?4, losses = ?5, begun = 0
WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND node <> 0;

-- name: record_attempt
INSERT INTO attempts
WITH ended (id, attempt, ending, started_at, finished_at, error, result) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?))
SELECT j.id, j.attempt, j.node, e.ending, e.started_at, e.finished_at, e.error, e.result
FROM ended AS e CROSS JOIN jobs AS j WHERE j.id = e.id AND j.attempt = e.attempt AND j.state = 'running'
ON CONFLICT (job_id, attempt) DO NOTHING;
