-- What running attempts report.

-- name: save_progress
-- Parameters: id, attempt, checkpoint, progress, whether it starts, deadline of an external job.
UPDATE jobs SET checkpoint = coalesce(?3, checkpoint), progress = coalesce(?4, progress), begun = max(begun, ?5), due_at = coalesce(?6, due_at)
WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND (?6 IS NULL OR node = 0);

-- name: find_marker
SELECT nonce FROM once_markers WHERE job_id = ?1 AND key = ?2;

-- name: take_marker
-- Nothing, when the job no longer runs under this attempt number. Parameters: id, attempt, key, nonce.
INSERT INTO once_markers (job_id, key, nonce) SELECT id, ?3, ?4 FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running';
