-- Jobs, as callers see them.

-- name: add_job
-- Rows: a draft in its own order, now, the permit it waits for. A repeated id and a held unique key are left alone; the row count tells.
INSERT INTO jobs ({draft}, created_at, waits_for) VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
ON CONFLICT (tenant, unique_key) WHERE unique_key IS NOT NULL DO NOTHING;

-- name: withdraw_finished
-- Rows: id.
DELETE FROM jobs WHERE id IN (VALUES /* rows */ (?)) AND EXISTS (SELECT 1 FROM history AS h WHERE h.id = jobs.id);

-- name: lock_job
-- The same; a store with concurrent transactions locks the row.
SELECT {live} FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: end_pending
-- Into the past without another attempt: cancelled or skipped. Parameters: id, state, now, reason.
INSERT INTO history SELECT {draft}, ?2, attempt, failures, losses, {lived}, NULL, ?3, NULL, ?4, NULL FROM jobs WHERE id = ?1 AND state = 'pending';

-- name: delete_pending
DELETE FROM jobs WHERE id = ?1 AND state = 'pending' RETURNING limit_key, schedule_id, 0;

-- name: reschedule_job
-- Parameters: tenant, id, due_at and priority, null to keep them.
UPDATE jobs SET due_at = coalesce(?3, due_at), priority = coalesce(?4, priority), waits_for = NULL
WHERE tenant = ?1 AND id = ?2 AND state = 'pending'
RETURNING queue, priority, due_at, tenant, limit_key;
