-- Nodes, the leases that last as long as their holder's, and the jobs they run.

-- name: join
INSERT INTO duetime_nodes (name, roles, version, started_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5);
SELECT LAST_INSERT_ID();

-- name: cancels_of
SELECT id FROM duetime_jobs WHERE claimable = 2 AND held_by = ?1 AND cancel_requested = 1;

-- name: peers_of
SELECT COUNT(*) FROM duetime_nodes WHERE dead = 0 AND id <> ?1 AND roles LIKE '%"worker"%';

-- name: live_nodes
SELECT id, lease_until, NULL FROM duetime_nodes WHERE dead = 0 ORDER BY id;

-- name: nodes
-- Parameter: whether without the dead.
SELECT n.id, n.name, n.roles, n.version, n.started_at, n.lease_until, n.dead,
  n.has_left, (SELECT COUNT(*) FROM duetime_jobs AS j WHERE j.claimable = 2 AND j.held_by = n.id)
FROM duetime_nodes AS n WHERE NOT (?1 AND n.dead) ORDER BY n.id;

-- name: jobs_of_dead_nodes
SELECT j.id, j.attempt, {j.claimed}, j.limit_key, j.permit
FROM duetime_jobs AS j STRAIGHT_JOIN duetime_nodes AS n ON n.id = j.held_by WHERE j.claimable = 2 AND n.dead = 1 LIMIT ?1;

-- name: jobs_of_node
SELECT id, attempt, {claimed}, limit_key, permit FROM duetime_jobs WHERE claimable = 2 AND held_by = ?1 LIMIT ?2;

-- name: jobs_past_deadline
SELECT id, attempt, {claimed}, limit_key, permit FROM duetime_jobs WHERE claimable = 2 AND held_by = 0 AND due_at <= ?1 ORDER BY due_at LIMIT ?2;

-- name: take_leases
-- Those that are free or whose holder is dead. Rows: name, holder, 1.
INSERT INTO duetime_leases (name, holder, token)
SELECT t.name, NULL, 0 FROM (SELECT name, holder, token FROM duetime_leases WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?)) AS t
ON DUPLICATE KEY UPDATE duetime_leases.name = duetime_leases.name;
UPDATE (SELECT name, holder, token FROM duetime_leases WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?)) AS t
STRAIGHT_JOIN duetime_leases AS l FORCE INDEX (PRIMARY) ON l.name = t.name SET l.holder = t.holder, l.token = l.token + 1
WHERE l.holder IS NULL OR NOT EXISTS (SELECT 1 FROM duetime_nodes AS n WHERE n.id = l.holder AND n.dead = 0);

-- name: drop_leases
-- Parameters: holder, those it keeps.
UPDATE duetime_leases FORCE INDEX (duetime_leases_holder) SET holder = NULL WHERE holder = ?1 AND name NOT IN ?2;

-- name: leases
SELECT l.name, l.holder, l.token, n.lease_until FROM duetime_leases AS l LEFT JOIN duetime_nodes AS n ON n.id = l.holder
WHERE l.token > 0 ORDER BY l.name;
