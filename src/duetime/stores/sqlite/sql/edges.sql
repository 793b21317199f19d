-- Small documents and the log of events.

-- name: get_record
-- Parameters: kind, tenant, key, now.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?4);

-- name: put_record
-- The row that is there goes, and with it its version. Parameters: kind, tenant, key, value, expires_at.
INSERT OR REPLACE INTO records (kind, tenant, key, value, expires_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version;

-- name: delete_record
DELETE FROM records WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?4);

-- name: list_records
-- Of one tenant. Parameters: kind, now, limit, tenant and key after which to begin, tenant.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = ?1 AND tenant = ?6 AND (tenant, key) > (?4, ?5) AND (expires_at IS NULL OR expires_at > ?2)
ORDER BY tenant, key LIMIT ?3;

-- name: list_all_records
-- The same of every tenant.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = ?1 AND (tenant, key) > (?4, ?5) AND (expires_at IS NULL OR expires_at > ?2)
ORDER BY tenant, key LIMIT ?3;

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
-- Ids and instants rise together. Parameters: instant.
SELECT coalesce((SELECT id FROM events WHERE at < ?1 ORDER BY id DESC LIMIT 1), 0);
