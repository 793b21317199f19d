-- Retention, and storage for the days ahead.

-- name: has_schema
-- Read from the tables of the catalogue: a cached answer, such as to_regclass gives, may be older than the lock we have waited for.
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'duetime' AND c.relname = 'schema_version');

-- name: add_days
SELECT duetime.add_days($1, $2);

-- name: drop_days
SELECT duetime.drop_days($1, $2);

-- name: prune_jobs
-- $1 horizon, $2 how many at most. Whole days are dropped; this is for the day the horizon lies in.
WITH old AS MATERIALIZED (SELECT id FROM duetime.history WHERE finished_at < $1 LIMIT $2),
    tries AS (DELETE FROM duetime.attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    gone AS (DELETE FROM duetime.history WHERE id = ANY (ARRAY(SELECT id FROM old)) AND finished_at < $1 RETURNING id)
SELECT count(*) FROM gone;

-- name: prune_nodes
DELETE FROM duetime.nodes n WHERE n.dead AND n.lease_until < $1 AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.node = n.id OFFSET 0);
