-- Unique jobs: which earlier job counts as the same.

-- name: live_holder
SELECT id, state = 'running', created_at FROM duetime_jobs WHERE tenant = ?1 AND unique_key = ?2 FOR UPDATE;

-- name: past_holder
-- The latest that matches. Parameters: tenant, key, states, created when at the earliest.
SELECT id FROM duetime_history WHERE tenant = ?1 AND unique_key = ?2 AND created_at >= ?4 AND state IN ?3
ORDER BY created_at DESC LIMIT 1;
