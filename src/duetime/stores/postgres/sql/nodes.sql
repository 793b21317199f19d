-- Nodes and hints.
--
-- A node's session holds the advisory lock with the key $base + its id. When its process dies, the kernel closes the socket and the
-- server frees the lock within milliseconds: others learn of the death long before the lease ends. A session whose client is gone may keep
-- the lock for a while: then `holds_lock` is false and the lock says nothing, until a heartbeat has taken it again.

-- name: join
-- $1 name, $2 roles, $3 version, $4 ttl in microseconds, $5 base of the lock's key, or NULL for no lock.
INSERT INTO duetime.nodes (name, roles, version, lease_until, holds_lock)
VALUES ($1, $2, $3, clock_timestamp() + $4::bigint * interval '1 microsecond', $5::bigint IS NOT NULL)
RETURNING id, CASE WHEN $5::bigint IS NOT NULL THEN pg_try_advisory_lock($5::bigint + id) END AS locked;

-- name: set_limits
-- $1 targets, $2 max_running, $3 rate counts, $4 rate periods; a target without numbers has no limit.
WITH x AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS x(target, max_running, rate_count, rate_period)),
    unlimited AS (DELETE FROM duetime.limits
        WHERE target = ANY (ARRAY(SELECT target FROM x WHERE max_running IS NULL AND rate_count IS NULL)))
INSERT INTO duetime.limits AS l (target, max_running, rate_count, rate_period, lowered)
SELECT x.target, x.max_running, x.rate_count, x.rate_period, EXISTS (SELECT FROM duetime.jobs j
    WHERE j.limit_key IS NOT NULL AND j.state = 'running' AND j.target = x.target OFFSET 0)
FROM x WHERE x.max_running IS NOT NULL OR x.rate_count IS NOT NULL ORDER BY x.target
ON CONFLICT (target) DO UPDATE SET max_running = excluded.max_running, rate_count = excluded.rate_count, rate_period = excluded.rate_period,
    lowered = l.lowered OR coalesce(excluded.max_running < l.max_running, excluded.max_running IS NOT NULL AND l.max_running IS NULL)
WHERE (l.max_running, l.rate_count, l.rate_period) IS DISTINCT FROM (excluded.max_running, excluded.rate_count, excluded.rate_period);

-- name: lock_node
-- $1 node, $2 base of the lock's key.
UPDATE duetime.nodes SET holds_lock = pg_try_advisory_lock($2::bigint + id) WHERE id = $1 AND NOT dead;

-- name: beat
-- $1 node, $2 ttl in microseconds, $3 base of the lock's key or NULL. Taking a lock that is held already only counts it once more.
UPDATE duetime.nodes SET lease_until = clock_timestamp() + $2::bigint * interval '1 microsecond',
    holds_lock = CASE WHEN $3::bigint IS NOT NULL THEN pg_try_advisory_lock($3::bigint + id) ELSE holds_lock END
WHERE id = $1 AND NOT dead
RETURNING ARRAY(SELECT j.id FROM duetime.jobs j WHERE j.node = $1 AND j.cancel_requested) AS cancels,
    (SELECT count(*) FROM duetime.nodes n WHERE NOT n.dead AND n.id <> $1 AND 'worker' = ANY (n.roles)) AS peers;

-- name: leave
UPDATE duetime.nodes SET dead = true, has_left = true WHERE id = $1 AND NOT dead;

-- name: nodes
-- $1 whether to leave out the dead, $2 whether to count their jobs.
SELECT n.id, n.name, n.roles, n.version, n.started_at, n.lease_until, n.dead,
    n.has_left, CASE WHEN $2 THEN (SELECT count(*) FROM duetime.jobs j WHERE j.node = n.id) END AS running
FROM duetime.nodes n WHERE NOT ($1 AND n.dead) ORDER BY n.id;

-- name: suspects
-- $1 this node, $2 base of the lock's key. Nodes whose lease has ended, or whose lock is free. A server that has just started has lost all
-- locks, also those of living nodes.
SELECT id, lease_until <= clock_timestamp() AS ended FROM (
    SELECT n.id, n.lease_until, CASE WHEN n.holds_lock AND pg_postmaster_start_time() < clock_timestamp() - interval '5 seconds'
        THEN pg_try_advisory_xact_lock_shared($2::bigint + n.id) ELSE false END AS free
    FROM duetime.nodes n WHERE NOT n.dead AND n.id <> $1 OFFSET 0) n
WHERE free OR lease_until <= clock_timestamp();

-- name: expire_nodes
-- $1 nodes whose lease has ended, $2 nodes whose process is gone.
UPDATE duetime.nodes SET dead = true
WHERE NOT dead AND ((id = ANY ($1::bigint[]) AND lease_until <= clock_timestamp()) OR (id = ANY ($2::bigint[]) AND holds_lock)) RETURNING id;

-- name: jobs_of_dead_nodes
SELECT j.* FROM (SELECT id FROM duetime.nodes WHERE dead ORDER BY id) n CROSS JOIN LATERAL (
    SELECT {claimed} FROM duetime.jobs WHERE node = n.id AND state = 'running' LIMIT $1) j LIMIT $1;

-- name: jobs_of_node
SELECT {claimed} FROM duetime.jobs WHERE node = $1 AND state = 'running' LIMIT $2;

-- name: notify
-- $1 payloads, $2 for each the instant it is about. Workers find what is not due soon without a notification.
SELECT pg_notify('duetime', x.payload) FROM unnest($1::text[], $2::timestamptz[]) AS x(payload, moment)
WHERE x.moment < clock_timestamp() + interval '2 seconds';

-- name: time
SELECT clock_timestamp();
