-- Unique jobs: which earlier job counts as the same.

-- name: was_replaced
-- Whether a job with this key ended for this reason. Parameters: tenant, key, reason.
SELECT EXISTS (SELECT 1 FROM {history} WHERE tenant = ?1 AND unique_key = ?2 AND state = 'cancelled' AND error = ?3);

-- name: give_up_key
UPDATE {jobs} SET unique_key = NULL WHERE id = ?1;
