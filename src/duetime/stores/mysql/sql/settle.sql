-- From running to what was decided. Every statement names the attempt: a late finisher changes nothing.
-- FORCE INDEX: a small table would be scanned, and the scan would wait for the locks of other transactions, which then wait for its own.
-- A list of rows begins with the columns of a table: otherwise MariaDB gives the columns types of its own, and cuts long values.

-- name: frees_permits
-- Whether jobs wait for permits, and whether a queue has a limit.
SELECT
  EXISTS (SELECT 1 FROM duetime_jobs WHERE permit_name > 'waits '),
  EXISTS (SELECT 1 FROM duetime_queues WHERE restricted = 1 AND max_running IS NOT NULL);

-- name: ending
-- Jobs that run: the statements below read the rows that this one has locked. Rows: id, attempt.
SELECT id, target, limit_key, permit, schedule_id, queue, priority, tenant, overlap, awaited, attempt FROM duetime_jobs FORCE INDEX (PRIMARY)
WHERE id IN /* firsts */ AND state = 'running' FOR UPDATE;

-- name: settle_plain
-- As `settle_final` and `settle_delete`, of jobs that have no permit and no caller that waits; the first statement locks them. d has only the
-- columns that differ between the rows, of which the attempt is none: each costs the server as much as a tenth of the row.
INSERT INTO duetime_history ({past})
SELECT {j.draft}, d.state, j.attempt, d.failures, d.losses, {j.lived}, d.started_at, d.finished_at, d.result, d.error, NULL
FROM (SELECT /* differing */ FROM duetime_history WHERE FALSE UNION ALL VALUES /* rows */ (?)) AS d
STRAIGHT_JOIN duetime_jobs AS j FORCE INDEX (PRIMARY) ON j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
WHERE j.limit_key IS NULL AND j.overlap IS NULL AND NOT j.awaited FOR UPDATE
ON DUPLICATE KEY UPDATE duetime_history.id = duetime_history.id;
DELETE j FROM duetime_jobs AS j FORCE INDEX (PRIMARY)
WHERE id IN /* firsts */ AND attempt = d.attempt AND state = 'running' AND limit_key IS NULL AND overlap IS NULL AND NOT awaited;

-- name: settle_final
-- A decision sent twice in one batch is written once; the row count tells how many were. A requested cancellation has stored its reason.
INSERT INTO duetime_history ({past})
SELECT {j.draft}, d.state, j.attempt, d.failures, d.losses, {j.lived}, d.started_at, d.finished_at, d.result,
  COALESCE(CASE WHEN d.state = 'cancelled' AND j.cancel_requested THEN j.error END, d.error), NULL
FROM (SELECT id, attempt, state, failures, losses, started_at, finished_at, result, error FROM duetime_history WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?)) AS d
STRAIGHT_JOIN duetime_jobs AS j FORCE INDEX (PRIMARY) ON j.id = d.id AND j.attempt = d.attempt AND j.state = 'running'
ON DUPLICATE KEY UPDATE duetime_history.id = duetime_history.id;

-- name: settle_delete
-- Of jobs that `ending` found. Rows: id, attempt.
DELETE j FROM duetime_jobs AS j FORCE INDEX (PRIMARY) WHERE id IN /* firsts */;

-- name: settle_pending
-- Parameters: id, attempt, due_at, failures, losses, error.
UPDATE duetime_jobs SET state = 'pending', due_at = ?3, failures = ?4, losses = ?5,
  error = COALESCE(CASE WHEN cancel_requested THEN error END, ?6, error), held_by = -1, held_since = -1, begun = 0, permit = NULL
WHERE id = ?1 AND attempt = ?2 AND state = 'running';
SELECT queue, priority, due_at, tenant FROM duetime_jobs WHERE id = ?1 AND ROW_COUNT() > 0;

-- name: settle_external
-- Repeated, it does not move the deadline. Parameters: id, attempt, deadline, failures, losses.
UPDATE duetime_jobs SET held_by = 0, due_at = ?3, failures = ?4, losses = ?5, begun = 0
WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND held_by <> 0;

-- name: record_attempt
INSERT INTO duetime_attempts
SELECT j.id, j.attempt, j.node, e.ending, e.started_at, e.finished_at, e.error, e.result
FROM (SELECT job_id AS id, attempt, ending, started_at, finished_at, error, result FROM duetime_attempts WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?)) AS e
STRAIGHT_JOIN duetime_jobs AS j FORCE INDEX (PRIMARY) ON j.id = e.id AND j.attempt = e.attempt AND j.state = 'running'
ON DUPLICATE KEY UPDATE duetime_attempts.attempt = duetime_attempts.attempt;
