-- Queues and their settings.

-- name: add_queues
INSERT INTO duetime.queues (name) SELECT DISTINCT unnest($1::text[]) ON CONFLICT DO NOTHING;

-- name: queues
-- $1 whether to count their live jobs.
SELECT q.name, q.paused, q.pause_note, q.paused_at, q.max_running, q.rate_count, q.rate_period,
    CASE WHEN $1 THEN coalesce(j.pending, 0) END AS pending, coalesce(j.due, 0) AS due, coalesce(j.running, 0) AS running
FROM duetime.queues q LEFT JOIN (
    SELECT queue, count(*) FILTER (WHERE state <> 'running') AS pending,
        count(*) FILTER (WHERE state <> 'running' AND due_at <= statement_timestamp()) AS due, count(*) FILTER (WHERE state = 'running') AS running
    FROM duetime.jobs WHERE $1::boolean GROUP BY queue) j ON j.queue = q.name
ORDER BY q.name;

-- name: set_queue
-- A new rate begins with nothing spent.
INSERT INTO duetime.queues AS q (name, paused, pause_note, paused_at, max_running, rate_count, rate_period) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET paused = $2, pause_note = $3, paused_at = $4, max_running = $5, rate_count = $6, rate_period = $7,
    spent_until = CASE WHEN (q.rate_count, q.rate_period) IS DISTINCT FROM ($6::bigint, $7::bigint) THEN 0 ELSE q.spent_until END;
