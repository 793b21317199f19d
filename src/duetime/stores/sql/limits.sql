-- Limits, rates and permits.

-- name: ask_at
-- Parameters: id, due_at.
UPDATE {jobs} SET due_at = ?2 WHERE id = ?1;
