-- Unique jobs: which earlier job counts as the same.

-- name: live_holder
SELECT id, state = 'running', created_at FROM jobs WHERE tenant = ?1 AND unique_key = ?2;

-- name: past_holder
-- The latest that matches. Parameters: tenant, key, JSON list of states, created when at the earliest.
SELECT id FROM history
WHERE tenant = ?1 AND unique_key = ?2 AND created_at >= ?4 AND state IN (SELECT value FROM json_each(?3))
ORDER BY created_at DESC LIMIT 1;

-- name: was_replaced
-- Whether a job with this key ended for this reason. Parameters: tenant, key, reason.
SELECT EXISTS (SELECT 1 FROM history WHERE tenant = ?1 AND unique_key = ?2 AND state = 'cancelled' AND error = ?3);

-- name: give_up_key
UPDATE jobs SET unique_key = NULL WHERE id = ?1;
