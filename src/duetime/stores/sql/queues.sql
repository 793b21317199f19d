-- Queues and their settings.

-- name: spend_queue
UPDATE {queues} SET spent_until = ?2 WHERE name = ?1;
