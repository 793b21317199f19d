-- What running attempts report.

-- name: save_progress
-- Parameters: id, attempt, checkpoint, progress, whether it starts, deadline of an external job.
UPDATE duetime_jobs SET checkpoint = COALESCE(?3, checkpoint), progress = COALESCE(?4, progress), begun = GREATEST(begun, ?5),
  due_at = COALESCE(?6, due_at)
WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND (?6 IS NULL OR node = 0);

-- name: find_marker
SELECT nonce FROM duetime_once_markers WHERE job_id = ?1 AND marker = ?2;

-- name: take_marker
-- Nothing, when the job no longer runs under this attempt number; its row is locked, so that it does until the marker is written.
-- Parameters: id, attempt, key, nonce.
INSERT INTO duetime_once_markers (job_id, marker, nonce)
SELECT id, ?3, ?4 FROM duetime_jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running' FOR UPDATE;
