-- External jobs: running, under node 0.

-- name: jobs_past_deadline
SELECT {claimed} FROM duetime.jobs WHERE coalesce(node, 1) = 0 AND due_at <= statement_timestamp() ORDER BY due_at LIMIT $1;

-- name: external_job
-- With the time at which its attempt ends.
SELECT attempt, due_at, failures, losses, clock_timestamp() AS now FROM duetime.jobs
WHERE tenant = $1 AND id = $2 AND state = 'running' AND node = 0;
