-- From running to what was decided. Every statement names the attempt: a late finisher changes nothing.
-- Statements whose rows are counted do not begin with WITH: sqlite3 does not count theirs.

-- name: was_settled
-- Whether this very decision was written before and still holds. Parameters: id, attempt, state, due_at.
SELECT EXISTS (SELECT 1 FROM {history} WHERE id = ?1 AND attempt = ?2 AND state = ?3)
  OR EXISTS (SELECT 1 FROM {jobs} WHERE id = ?1 AND attempt = ?2 AND state = 'pending' AND ?3 = 'pending' AND due_at = ?4)
  OR EXISTS (SELECT 1 FROM {jobs} WHERE id = ?1 AND attempt = ?2 AND node = 0 AND ?3 = 'running');
