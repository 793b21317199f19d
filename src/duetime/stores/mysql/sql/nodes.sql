-- Nodes and the jobs they run.

-- name: join
INSERT INTO duetime_nodes (name, roles, version, started_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5);
SELECT LAST_INSERT_ID();

-- name: cancels_of
SELECT id FROM duetime_jobs WHERE claimable = 2 AND held_by = ?1 AND cancel_requested = 1;

-- name: peers_of
SELECT COUNT(*) FROM duetime_nodes WHERE dead = 0 AND id <> ?1 AND roles LIKE '%"worker"%';

-- name: live_nodes
-- All but this one, each with the sessions that hold the lock of this node and its own: signs_of_life.py.
SELECT id, lease_until, CONCAT(IS_USED_LOCK(CONCAT('duetime.', MD5(DATABASE()), '.', ?1)), '/',
  COALESCE(IS_USED_LOCK(CONCAT('duetime.', MD5(DATABASE()), '.', id)), ''))
FROM duetime_nodes WHERE dead = 0 AND id <> ?1 ORDER BY id;

-- name: nodes
-- Parameters: whether without the dead, whether to count their jobs.
SELECT n.id, n.name, n.roles, n.version, n.started_at, n.lease_until, n.dead,
  n.has_left, CASE WHEN ?2 THEN (SELECT COUNT(*) FROM duetime_jobs AS j WHERE j.claimable = 2 AND j.held_by = n.id) END
FROM duetime_nodes AS n WHERE NOT (?1 AND n.dead) ORDER BY n.id;

-- name: jobs_of_dead_nodes
SELECT j.id, j.attempt, {j.claimed}, j.limit_key, j.permit
FROM duetime_jobs AS j STRAIGHT_JOIN duetime_nodes AS n ON n.id = j.held_by WHERE j.claimable = 2 AND n.dead = 1 LIMIT ?1;

-- name: jobs_of_node
SELECT id, attempt, {claimed}, limit_key, permit FROM duetime_jobs WHERE claimable = 2 AND held_by = ?1 LIMIT ?2;

-- name: jobs_past_deadline
SELECT id, attempt, {claimed}, limit_key, permit FROM duetime_jobs WHERE claimable = 2 AND held_by = 0 AND due_at <= ?1 ORDER BY due_at LIMIT ?2;
