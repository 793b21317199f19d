-- Records and the event log.

-- name: get_record
-- Parameters: kind, tenant, key, now.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?4);

-- name: put_record
-- Replaces the row, and with it the version. Parameters: kind, tenant, key, value, expires_at.
INSERT OR REPLACE INTO records (kind, tenant, key, value, expires_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version;

-- name: delete_record
DELETE FROM records WHERE kind = ?1 AND tenant = ?2 AND key = ?3;

-- name: list_records
-- To be followed by the tenant, if of one, and `records_order`.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = :kind AND (tenant, key) > (:after_tenant, :after_key) AND (expires_at IS NULL OR expires_at > :now);

-- name: records_order
ORDER BY tenant, key LIMIT :limit;

-- name: forget_records
DELETE FROM records WHERE expires_at <= ?1;

-- name: add_events
-- Rows: when, event.
INSERT INTO events (at, event) VALUES /* rows */ (?, ?);

-- name: list_events
SELECT id, event FROM events WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: last_event
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0);

-- name: trim_events
-- Up to this id.
DELETE FROM events WHERE id <= ?1;

-- name: last_old_event
-- Ids and instants rise together. Parameter: instant.
SELECT coalesce((SELECT id FROM events WHERE at < ?1 ORDER BY id DESC LIMIT 1), 0);
