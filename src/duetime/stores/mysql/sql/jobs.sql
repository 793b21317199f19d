-- Jobs, as callers see them.

-- name: add_job
-- Rows: a draft in its own order, now, the permit it waits for. A repeated id and a held unique key are left alone, and their rows locked;
-- the row count tells.
INSERT INTO duetime_jobs ({draft}, created_at, waits_for)
VALUES /* rows */ (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE duetime_jobs.id = duetime_jobs.id;

-- name: withdraw_finished
-- Rows: id.
DELETE j FROM duetime_jobs AS j FORCE INDEX (PRIMARY) STRAIGHT_JOIN duetime_history AS h FORCE INDEX (PRIMARY) ON h.id = j.id WHERE j.id IN /* firsts */;

-- name: lock_job
SELECT {live} FROM duetime_jobs WHERE tenant = ?1 AND id = ?2 FOR UPDATE;

-- name: await_job
-- Its end is announced. Returns the lane and due time if it is pending: claims pass over a row that is locked. Parameters: tenant, id.
UPDATE duetime_jobs SET awaited = 1 WHERE tenant = ?1 AND id = ?2;
SELECT queue, priority, due_at, tenant FROM duetime_jobs WHERE tenant = ?1 AND id = ?2 AND claimable < 2;

-- name: end_pending
-- Into the past without another attempt: cancelled or skipped. The row is locked. Parameters: id, state, now, reason.
INSERT INTO duetime_history ({past})
SELECT {draft}, ?2, attempt, failures, losses, {lived}, NULL, ?3, NULL, ?4, NULL FROM duetime_jobs WHERE id = ?1 AND state = 'pending' FOR UPDATE;

-- name: delete_pending
SELECT limit_key, schedule_id, awaited FROM duetime_jobs WHERE id = ?1 AND state = 'pending';
DELETE FROM duetime_jobs WHERE id = ?1 AND state = 'pending';

-- name: reschedule_job
-- Parameters: tenant, id, due_at and priority, null to keep them.
UPDATE duetime_jobs SET due_at = COALESCE(?3, due_at), priority = COALESCE(?4, priority), waits_for = NULL
WHERE tenant = ?1 AND id = ?2 AND state = 'pending';
SELECT queue, priority, due_at, tenant, limit_key FROM duetime_jobs WHERE tenant = ?1 AND id = ?2 AND state = 'pending';
