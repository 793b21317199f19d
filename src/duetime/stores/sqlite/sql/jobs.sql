-- What callers ask of jobs.

-- name: add_job
-- Rows: a draft without a gate in its own order, then now. A repeated id and a held unique key are left alone; the row count tells.
INSERT INTO jobs ({draft}, created_at) VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
ON CONFLICT (tenant, unique_key) WHERE unique_key IS NOT NULL DO NOTHING;

-- name: add_gated_job
-- Rows: as add_job, then gate and state.
INSERT INTO jobs ({draft}, created_at, gate, state) VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
ON CONFLICT (tenant, unique_key) WHERE unique_key IS NOT NULL DO NOTHING;

-- name: past_between
-- Whether any past job has an id in this range: new ids lie beyond them all, so one look serves a whole batch.
SELECT EXISTS (SELECT 1 FROM history WHERE id BETWEEN ?1 AND ?2);

-- name: is_past
SELECT EXISTS (SELECT 1 FROM history WHERE id = ?1);

-- name: is_stored
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1) OR EXISTS (SELECT 1 FROM history WHERE id = ?1);

-- name: holder_of_key
SELECT id FROM jobs WHERE tenant = ?1 AND unique_key = ?2;

-- name: get_live
SELECT {draft}, gate, state, attempt, failures, losses, {lived}, NULL, NULL, NULL, error, NULL FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: get_past
SELECT {draft}, (SELECT g.gate FROM past_gates AS g WHERE g.job_id = history.id), state, attempt, failures, losses, {lived},
  started_at, finished_at, result, error, disposition
FROM history WHERE tenant = ?1 AND id = ?2;

-- name: list_attempts
SELECT attempt, node, ending, started_at, finished_at, error FROM attempts WHERE job_id = ?1 ORDER BY attempt;

-- name: count_pending
-- Read from the claim's own index alone; the exclusive ones have theirs.
SELECT queue, count(*), total(due_at <= ?1), 0 FROM jobs WHERE state = 'pending' AND overlap IS NULL GROUP BY queue;

-- name: count_exclusive
SELECT queue, count(*), total(due_at <= ?1), 0 FROM jobs WHERE state = 'pending' AND overlap IS NOT NULL GROUP BY queue;

-- name: count_gated
SELECT queue, count(*), total(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_gated WHERE state = 'gated' GROUP BY queue;

-- name: count_waiting
SELECT queue, count(*), total(due_at <= ?1), 0 FROM jobs INDEXED BY jobs_waiting WHERE state = 'waiting' GROUP BY queue;

-- name: count_running
SELECT queue, 0, 0, count(*) FROM jobs WHERE node IS NOT NULL GROUP BY queue;

-- name: job_state
SELECT state, node FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: end_unstarted
-- Into the past without an attempt: cancelled or skipped. Parameters: id, state, now, reason.
INSERT INTO history SELECT {draft}, ?2, attempt, failures, losses, {lived}, NULL, ?3, NULL, ?4, NULL FROM jobs WHERE id = ?1 AND state <> 'running';

-- name: delete_unstarted
DELETE FROM jobs WHERE id = ?1 AND state <> 'running';

-- name: request_cancel
UPDATE jobs SET cancel_requested = 1 WHERE id = ?1;

-- name: change_job
UPDATE jobs SET due_at = coalesce(?3, due_at), priority = coalesce(?4, priority),
  state = CASE WHEN state = 'waiting' THEN 'gated' ELSE state END
WHERE tenant = ?1 AND id = ?2 AND state <> 'running'
RETURNING queue, priority, due_at;

-- name: dispose_job
-- What became of a dead letter.
UPDATE history SET disposition = ?3 WHERE tenant = ?1 AND id = ?2 AND state = 'dead' AND disposition IS NULL;

-- name: revived_before
-- Whether the dead letter was revived as this job by an earlier call whose reply was lost. Parameters: tenant, dead letter, job.
SELECT EXISTS (SELECT 1 FROM history WHERE tenant = ?1 AND id = ?2 AND disposition = 'retried')
  AND (EXISTS (SELECT 1 FROM jobs WHERE id = ?3) OR EXISTS (SELECT 1 FROM history WHERE id = ?3));
