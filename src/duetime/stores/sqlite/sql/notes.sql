-- What a running attempt keeps.

-- name: save_note
-- Parameters: id, attempt, checkpoint, progress.
UPDATE jobs SET checkpoint = coalesce(?3, checkpoint), progress = coalesce(?4, progress)
WHERE id = ?1 AND attempt = ?2 AND state = 'running';

-- name: find_mark
SELECT nonce FROM marks WHERE job_id = ?1 AND key = ?2;

-- name: take_mark
-- Nothing, when the job does not run under this attempt any more. Parameters: id, attempt, key, nonce.
INSERT INTO marks (job_id, key, nonce) SELECT id, ?3, ?4 FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running';

-- name: is_running
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running');

-- name: is_live
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1);
