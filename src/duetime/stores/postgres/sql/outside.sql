-- Jobs handed over to a worker outside: running, under node 0.

-- name: extend
UPDATE duetime.jobs SET due_at = $3 WHERE id = $1 AND attempt = $2 AND state = 'running' AND node = 0;

-- name: overdue
SELECT {claimed}
FROM duetime.jobs WHERE coalesce(node, 1) = 0 AND due_at <= statement_timestamp() ORDER BY due_at LIMIT $1;

-- name: outside_job
-- And the instant, by which the end of its attempt is dated.
SELECT attempt, due_at, failures, losses, clock_timestamp() AS now FROM duetime.jobs
WHERE tenant = $1 AND id = $2 AND state = 'running' AND node = 0;
