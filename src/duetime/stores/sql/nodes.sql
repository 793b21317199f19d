-- Nodes and the jobs they run.

-- name: beat
UPDATE {nodes} SET lease_until = ?2 WHERE id = ?1 AND dead = 0;

-- name: declare_dead
-- Parameters: node, whether it left by itself.
UPDATE {nodes} SET dead = 1, has_left = ?2 WHERE id = ?1 AND dead = 0;

-- name: is_alive
SELECT EXISTS (SELECT 1 FROM {nodes} WHERE id = ?1 AND dead = 0 AND lease_until > ?2);
