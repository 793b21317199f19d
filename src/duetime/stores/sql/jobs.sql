-- Jobs, as callers see them.

-- name: past_between
-- Whether any past job has an id in this range: new ids are greater than all of them, so one look is enough for a whole batch.
SELECT EXISTS (SELECT 1 FROM {history} WHERE id BETWEEN ?1 AND ?2);

-- name: is_stored
SELECT EXISTS (SELECT 1 FROM {jobs} WHERE id = ?1) OR EXISTS (SELECT 1 FROM {history} WHERE id = ?1);

-- name: get_live
SELECT {live} FROM {jobs} WHERE tenant = ?1 AND id = ?2;

-- name: get_past
SELECT {past} FROM {history} WHERE tenant = ?1 AND id = ?2;

-- name: list_attempts
SELECT attempt, node, ending, started_at, finished_at, error, result FROM {attempts} WHERE job_id = ?1 ORDER BY attempt;

-- name: request_cancel
-- Parameters: id, reason.
UPDATE {jobs} SET cancel_requested = 1, error = ?2 WHERE id = ?1;

-- name: resolve_dead_job
-- Parameters: tenant, id, disposition.
UPDATE {history} SET disposition = ?3 WHERE tenant = ?1 AND id = ?2
  AND (state = 'dead' OR state = 'skipped' AND ?3 = 'retried') AND disposition IS NULL;

-- name: was_retried
-- Whether the dead letter was retried as this job by an earlier call whose reply was lost. Parameters: tenant, dead letter, job.
SELECT EXISTS (SELECT 1 FROM {history} WHERE tenant = ?1 AND id = ?2 AND disposition = 'retried')
  AND (EXISTS (SELECT 1 FROM {jobs} WHERE id = ?3) OR EXISTS (SELECT 1 FROM {history} WHERE id = ?3));
