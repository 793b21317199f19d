-- Retention, and storage for the days ahead.

-- name: has_schema
-- Read from the tables of the catalogue: a cached answer, such as to_regclass gives, may be older than the lock we have waited for.
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'duetime' AND c.relname = 'schema_version');

-- name: version
-- And when the first schema was made, by which we know our own database from another.
SELECT max(version) AS version, min(applied_at) AS home FROM duetime.schema_version;

-- name: add_days
SELECT duetime.add_days($1, $2);

-- name: drop_days
SELECT duetime.drop_days($1, $2);

-- name: prune_jobs
-- $1 horizon, $2 how many at most. Whole days are dropped; this is for the day the horizon lies in.
WITH old AS MATERIALIZED (SELECT id FROM duetime.history WHERE finished_at < $1 LIMIT $2),
    tries AS (DELETE FROM duetime.attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    marked AS (DELETE FROM duetime.marks WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    gone AS (DELETE FROM duetime.history WHERE id = ANY (ARRAY(SELECT id FROM old)) AND finished_at < $1 RETURNING id)
SELECT count(*) FROM gone;

-- name: prune_target
-- $1 horizon, $2 how many at most, $3 target. No index leads there: it would cost every job that finishes.
WITH old AS MATERIALIZED (SELECT id FROM duetime.history WHERE finished_at < $1 AND target = $3 LIMIT $2),
    tries AS (DELETE FROM duetime.attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    marked AS (DELETE FROM duetime.marks WHERE job_id = ANY (ARRAY(SELECT id FROM old))),
    gone AS (DELETE FROM duetime.history WHERE id = ANY (ARRAY(SELECT id FROM old)) AND finished_at < $1 AND target = $3 RETURNING id)
SELECT count(*) FROM gone;

-- name: prune_marks
-- Of jobs that went with their whole day.
DELETE FROM duetime.marks WHERE ctid = ANY (ARRAY(
    SELECT m.ctid FROM duetime.marks m WHERE m.made_at < $1
        AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = m.job_id OFFSET 0)
        AND NOT EXISTS (SELECT FROM duetime.history h WHERE h.id = m.job_id OFFSET 0)
    LIMIT $2));

-- name: prune_gates
-- Those with nothing spent and nobody at them; a gate that is needed again is made again.
DELETE FROM duetime.gates WHERE name = ANY (ARRAY(
    SELECT name FROM duetime.gates WHERE spent_until < duetime.micros(clock_timestamp()) LIMIT $1 FOR UPDATE SKIP LOCKED));

-- name: prune_nodes
DELETE FROM duetime.nodes n WHERE n.dead AND n.lease_until < $1 AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.node = n.id OFFSET 0);
