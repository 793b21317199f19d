-- Nodes and the jobs they run.

-- name: join
INSERT INTO nodes (name, roles, version, started_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id;

-- name: record_lock_file
UPDATE nodes SET lock_file = ?2 WHERE id = ?1;

-- name: extend_leases
-- By the time in which no node could renew its lease.
UPDATE nodes SET lease_until = lease_until + ?1 WHERE dead = 0;

-- name: cancels_of
SELECT id FROM jobs WHERE node = ?1 AND cancel_requested = 1;

-- name: peers_of
SELECT count(*) FROM nodes AS n WHERE n.dead = 0 AND n.id <> ?1 AND EXISTS (SELECT 1 FROM json_each(n.roles) WHERE value = 'worker');

-- name: live_nodes
SELECT id, lease_until, lock_file FROM nodes WHERE dead = 0 AND id <> ?1 ORDER BY id;

-- name: nodes
-- Parameters: whether without the dead, whether to count their jobs.
SELECT n.id, n.name, n.roles, n.version, n.started_at, n.lease_until, n.dead,
  n.has_left, CASE WHEN ?2 THEN (SELECT count(*) FROM jobs AS j WHERE j.node = n.id) END
FROM nodes AS n WHERE NOT (?1 AND n.dead) ORDER BY n.id;

-- name: jobs_of_dead_nodes
SELECT j.id, j.attempt, {j.claimed}, j.limit_key, j.permit
FROM nodes AS n CROSS JOIN jobs AS j WHERE n.dead = 1 AND j.node = n.id LIMIT ?1;

-- name: jobs_of_node
SELECT id, attempt, {claimed}, limit_key, permit FROM jobs WHERE node = ?1 LIMIT ?2;

-- name: jobs_past_deadline
SELECT id, attempt, {claimed}, limit_key, permit FROM jobs INDEXED BY jobs_external WHERE node = 0 AND due_at <= ?1 ORDER BY due_at LIMIT ?2;
