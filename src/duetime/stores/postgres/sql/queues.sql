-- Queues, and what their operators say about them.

-- name: add_queues
INSERT INTO duetime.queues (name) SELECT DISTINCT unnest($1::text[]) ON CONFLICT DO NOTHING;

-- name: queues
SELECT name, paused, pause_note, paused_at, most, rate_count, rate_period FROM duetime.queues ORDER BY name;

-- name: set_queue
-- A rate that is new begins with nothing spent.
INSERT INTO duetime.queues AS q (name, paused, pause_note, paused_at, most, rate_count, rate_period) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET paused = $2, pause_note = $3, paused_at = $4, most = $5, rate_count = $6, rate_period = $7,
    spent_until = CASE WHEN (q.rate_count, q.rate_period) IS DISTINCT FROM ($6::bigint, $7::bigint) THEN 0 ELSE q.spent_until END;
