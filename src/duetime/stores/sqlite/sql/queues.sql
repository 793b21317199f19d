-- Queues, and what their operator says about them.

-- name: add_queue
INSERT INTO queues (name) VALUES (?1) ON CONFLICT (name) DO NOTHING;

-- name: queue_names
SELECT name FROM queues;

-- name: queues
SELECT name, paused, pause_note, paused_at, most, rate_count, rate_period FROM queues ORDER BY name;

-- name: set_queue
INSERT INTO queues (name, paused, pause_note, paused_at, most, rate_count, rate_period) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, pause_note = excluded.pause_note, paused_at = excluded.paused_at,
  most = excluded.most, rate_count = excluded.rate_count, rate_period = excluded.rate_period;

-- name: ruled_queues
SELECT name, paused, most, rate_count, rate_period, spent_until FROM queues INDEXED BY queues_ruled
WHERE paused = 1 OR most IS NOT NULL OR rate_count IS NOT NULL;

-- name: running_in_queue
-- Up to a number. By way of the index of nodes: those that run are few among the live. Parameters: queue, number.
SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_node WHERE node IS NOT NULL AND queue = ?1 LIMIT ?2);

-- name: spend_queue
UPDATE queues SET spent_until = ?2 WHERE name = ?1;

-- name: limited_queues_of
-- Lanes of jobs that run under these attempts, in queues with a limit. Rows: id, attempt.
WITH ended (id, attempt) AS (VALUES /* rows */ (?, ?))
SELECT DISTINCT j.queue, j.priority FROM ended AS e CROSS JOIN jobs AS j CROSS JOIN queues AS q
WHERE j.id = e.id AND j.attempt = e.attempt AND j.state = 'running' AND q.name = j.queue AND q.most IS NOT NULL;
