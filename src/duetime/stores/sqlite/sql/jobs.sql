-- Jobs, as callers see them.

-- name: add_job
-- Rows: a draft in its own order, now, the permit it waits for. A repeated id and a held unique key are left alone; the row count tells.
INSERT INTO jobs ({draft}, created_at, waits_for) VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
ON CONFLICT (tenant, unique_key) WHERE unique_key IS NOT NULL DO NOTHING;

-- name: past_between
-- Whether any past job has an id in this range: new ids are greater than all of them, so one look is enough for a whole batch.
SELECT EXISTS (SELECT 1 FROM history WHERE id BETWEEN ?1 AND ?2);

-- name: is_stored
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1) OR EXISTS (SELECT 1 FROM history WHERE id = ?1);

-- name: get_live
SELECT {live} FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: get_past
SELECT {past} FROM history WHERE tenant = ?1 AND id = ?2;

-- name: list_attempts
SELECT attempt, node, ending, started_at, finished_at, error, result FROM attempts WHERE job_id = ?1 ORDER BY attempt;

-- name: end_pending
-- Into the past without another attempt: cancelled or skipped. Parameters: id, state, now, reason.
INSERT INTO history SELECT {draft}, ?2, attempt, failures, losses, {lived}, NULL, ?3, NULL, ?4, NULL FROM jobs WHERE id = ?1 AND state = 'pending';

-- name: delete_pending
DELETE FROM jobs WHERE id = ?1 AND state = 'pending' RETURNING limit_key, schedule_id;

-- name: request_cancel
-- Parameters: id, reason.
UPDATE jobs SET cancel_requested = 1, error = ?2 WHERE id = ?1;

-- name: reschedule_job
-- Parameters: tenant, id, due_at and priority, null to keep them.
UPDATE jobs SET due_at = coalesce(?3, due_at), priority = coalesce(?4, priority), waits_for = NULL
WHERE tenant = ?1 AND id = ?2 AND state = 'pending'
RETURNING queue, priority, due_at, tenant, limit_key;

-- name: resolve_dead_job
-- Parameters: tenant, id, disposition.
UPDATE history SET disposition = ?3 WHERE tenant = ?1 AND id = ?2 AND state = 'dead' AND disposition IS NULL;

-- name: was_retried
-- Whether the dead letter was retried as this job by an earlier call whose reply was lost. Parameters: tenant, dead letter, job.
SELECT EXISTS (SELECT 1 FROM history WHERE tenant = ?1 AND id = ?2 AND disposition = 'retried')
  AND (EXISTS (SELECT 1 FROM jobs WHERE id = ?3) OR EXISTS (SELECT 1 FROM history WHERE id = ?3));
