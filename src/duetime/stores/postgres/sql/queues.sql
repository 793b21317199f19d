-- Queues and their settings.

-- name: add_queues
-- $1 queues, $2 for each a tenant that stores jobs under it.
WITH q AS (INSERT INTO duetime.queues (name) SELECT DISTINCT unnest($1::text[]) ON CONFLICT DO NOTHING)
INSERT INTO duetime.queue_tenants (queue, tenant) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING;

-- name: queues
-- $1 whether to count their live jobs; $2 to $6 the fields of model.limit.QueueFilter.
SELECT q.name, q.paused, q.pause_note, q.paused_at, q.max_running, q.rate_count, q.rate_period,
    CASE WHEN $1 THEN coalesce(j.pending, 0) END AS pending, coalesce(j.due, 0) AS due, coalesce(j.running, 0) AS running
FROM duetime.queues q LEFT JOIN (
    SELECT queue, count(*) FILTER (WHERE state <> 'running') AS pending,
        count(*) FILTER (WHERE state <> 'running' AND due_at <= statement_timestamp()) AS due, count(*) FILTER (WHERE state = 'running') AS running
    FROM duetime.jobs WHERE $1::boolean AND ($3::text IS NULL OR tenant = $3) GROUP BY queue) j ON j.queue = q.name
WHERE (NOT $2::boolean OR q.paused OR q.limited) AND ($4::text IS NULL OR q.name = $4) AND q.name > $5
    AND ($3 IS NULL OR EXISTS (SELECT FROM duetime.queue_tenants t WHERE t.tenant = $3 AND t.queue = q.name))
ORDER BY q.name LIMIT $6::bigint;

-- name: lanes
-- $1 after which queue, $2 how many queues.
SELECT * FROM duetime.lanes($1, $2);

-- name: set_queue
-- A new rate begins with nothing spent.
INSERT INTO duetime.queues AS q (name, paused, pause_note, paused_at, max_running, rate_count, rate_period) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET paused = $2, pause_note = $3, paused_at = $4, max_running = $5, rate_count = $6, rate_period = $7,
    spent_until = CASE WHEN (q.rate_count, q.rate_period) IS DISTINCT FROM ($6::bigint, $7::bigint) THEN 0 ELSE q.spent_until END;
