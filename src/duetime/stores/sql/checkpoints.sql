-- What running attempts report.

-- name: is_running
SELECT EXISTS (SELECT 1 FROM {jobs} WHERE id = ?1 AND attempt = ?2 AND state = 'running');
