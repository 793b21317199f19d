-- Nodes, and the leases that last as long as their holder's.

-- name: join
INSERT INTO nodes (name, roles, version, started_at, lease_until) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id;

-- name: note_lock
-- The node holds its lock in the file with this inode.
UPDATE nodes SET lock_file = ?2 WHERE id = ?1;

-- name: beat
UPDATE nodes SET lease_until = ?2 WHERE id = ?1 AND dead = 0;

-- name: spare_leases
-- For a time in which nobody could renew them.
UPDATE nodes SET lease_until = lease_until + ?1 WHERE dead = 0;

-- name: cancels_of
SELECT id FROM jobs WHERE node = ?1 AND cancel_requested = 1;

-- name: peers_of
SELECT count(*) FROM nodes AS n WHERE n.dead = 0 AND n.id <> ?1 AND EXISTS (SELECT 1 FROM json_each(n.roles) WHERE value = 'worker');

-- name: declare_dead
UPDATE nodes SET dead = 1 WHERE id = ?1 AND dead = 0;

-- name: live_nodes
SELECT id, lease_until, lock_file FROM nodes WHERE dead = 0 ORDER BY id;

-- name: nodes
-- Parameter: whether without the dead.
SELECT n.id, n.name, n.roles, n.version, n.started_at, n.lease_until, n.dead, (SELECT count(*) FROM jobs AS j WHERE j.node = n.id)
FROM nodes AS n WHERE NOT (?1 AND n.dead) ORDER BY n.id;

-- name: orphans
SELECT j.id, j.attempt, {j.claimed}, j.gate
FROM nodes AS n CROSS JOIN jobs AS j WHERE n.dead = 1 AND j.node = n.id LIMIT ?1;

-- name: held
SELECT id, attempt, {claimed}, gate
FROM jobs WHERE node = ?1;

-- name: is_alive
SELECT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND dead = 0);

-- name: take_leases
-- Rows: name, holder, 1.
INSERT INTO leases (name, holder, token) VALUES /* rows */ (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = token + 1
WHERE holder IS NULL OR NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = holder AND n.dead = 0);

-- name: held_leases
SELECT name FROM leases WHERE holder = ?1;

-- name: drop_leases
UPDATE leases SET holder = NULL WHERE holder = ?1 AND name IN (SELECT value FROM json_each(?2));

-- name: drop_all_leases
UPDATE leases SET holder = NULL WHERE holder = ?1;

-- name: leases
SELECT l.name, l.holder, l.token, n.lease_until FROM leases AS l LEFT JOIN nodes AS n ON n.id = l.holder ORDER BY l.name;
