-- Jobs handed over to a worker outside: running, under node 0.

-- name: hand_over
-- Said again, it moves no deadline. Parameters: id, attempt, deadline, failures, losses.
UPDATE jobs SET node = 0, due_at = ?3, failures = ?4, losses = ?5, begun = 0
WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND node <> 0;

-- name: is_outside
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND attempt = ?2 AND node = 0);

-- name: extend
UPDATE jobs SET due_at = ?3 WHERE id = ?1 AND attempt = ?2 AND node = 0;

-- name: overdue
SELECT id, attempt, {claimed}, gate
FROM jobs INDEXED BY jobs_outside WHERE node = 0 AND due_at <= ?1 ORDER BY due_at LIMIT ?2;

-- name: outside_job
SELECT attempt, due_at, failures, losses FROM jobs WHERE id = ?1 AND node = 0;
