-- Unique jobs: which earlier job counts as the same.

-- name: live_holder
SELECT id, state = 'running', created_at FROM jobs WHERE tenant = ?1 AND unique_key = ?2;

-- name: past_holder
-- The latest that matches. Parameters: tenant, key, JSON list of states, created when at the earliest.
SELECT id FROM history
WHERE tenant = ?1 AND unique_key = ?2 AND created_at >= ?4 AND state IN (SELECT value FROM json_each(?3))
ORDER BY created_at DESC LIMIT 1;
