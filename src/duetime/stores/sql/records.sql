-- Records and the event log.

-- name: forget_records
DELETE FROM {records} WHERE expires_at <= ?1;

-- name: list_events
SELECT id, event FROM {events} WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: trim_events
-- Up to this id.
DELETE FROM {events} WHERE id <= ?1;

-- name: last_old_event
-- Ids and instants rise together. Parameter: instant.
SELECT coalesce((SELECT id FROM {events} WHERE at < ?1 ORDER BY id DESC LIMIT 1), 0);
