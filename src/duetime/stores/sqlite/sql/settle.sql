-- From running to what was decided. Every statement names the attempt: a late finisher changes nothing.
-- None begins with WITH: of those sqlite3 does not count the rows.

-- name: begin
UPDATE jobs SET begun = 1 WHERE id = ?1 AND attempt = ?2 AND state = 'running';

-- name: settle_with_care
-- Whether an end may be news to somebody: to jobs of its schedule, behind its gate, in its queue.
SELECT
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_exclusive WHERE state = 'pending' AND overlap IS NOT NULL),
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_gate WHERE gate IS NOT NULL AND node IS NOT NULL),
  EXISTS (SELECT 1 FROM queues INDEXED BY queues_ruled WHERE most IS NOT NULL);

-- name: settle_final
-- A decision sent twice in one batch is written once; the row count tells how many were.
INSERT INTO history
WITH decided (id, attempt, state, failures, losses, started_at, finished_at, result, error) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?))
SELECT {j.draft}, d.state, j.attempt, d.failures, d.losses, {j.lived}, d.started_at, d.finished_at, d.result, d.error, NULL
FROM decided AS d CROSS JOIN jobs AS j WHERE j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
ON CONFLICT (id) DO NOTHING;

-- name: settle_delete
DELETE FROM jobs WHERE rowid IN (
  WITH decided (id, attempt) AS (VALUES /* rows */ (?, ?))
  SELECT j.rowid FROM decided AS d CROSS JOIN jobs AS j WHERE j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
);

-- name: settle_delete_gated
-- As settle_delete, and answers which gates they held.
DELETE FROM jobs WHERE rowid IN (
  WITH decided (id, attempt) AS (VALUES /* rows */ (?, ?))
  SELECT j.rowid FROM decided AS d CROSS JOIN jobs AS j WHERE j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
) RETURNING id, gate;

-- name: settle_again
-- Parameters: id, attempt, due_at, failures, losses, error.
UPDATE jobs SET state = CASE WHEN gate IS NULL OR overlap IS NOT NULL THEN 'pending' ELSE 'gated' END, due_at = ?3,
  failures = ?4, losses = ?5, error = coalesce(?6, error), node = NULL, claimed_at = NULL, begun = 0
WHERE id = ?1 AND attempt = ?2 AND state = 'running'
RETURNING queue, priority, due_at, gate;

-- name: record_attempt
INSERT INTO attempts
WITH ended (id, attempt, ending, started_at, finished_at, error) AS (VALUES /* rows */ (?, ?, ?, ?, ?, ?))
SELECT j.id, j.attempt, j.node, e.ending, e.started_at, e.finished_at, e.error
FROM ended AS e CROSS JOIN jobs AS j WHERE j.id = e.id AND j.attempt = e.attempt AND j.state = 'running'
ON CONFLICT (job_id, attempt) DO NOTHING;

-- name: was_settled
-- Whether this very decision was written before and still stands. Parameters: id, attempt, state, due_at.
SELECT EXISTS (SELECT 1 FROM history WHERE id = ?1 AND attempt = ?2 AND state = ?3)
  OR EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND attempt = ?2 AND state <> 'running' AND ?3 = 'pending' AND due_at = ?4);

-- name: freed
-- Lanes in which an exclusive job is due and nobody stands in its way any more.
SELECT j.queue, j.priority, min(j.due_at)
FROM jobs AS j INDEXED BY jobs_exclusive
WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.due_at <= ?1
  AND NOT EXISTS (SELECT 1 FROM jobs AS s WHERE s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id)
GROUP BY j.queue, j.priority;
