-- Records and the event log.

-- name: get_record
-- Parameters: kind, tenant, key, now.
SELECT kind, tenant, key, value, version, expires_at FROM records
WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?4);

-- name: lock_record
-- Whether it has expired or not; a store with concurrent transactions locks the row.
SELECT kind, tenant, key, value, version, expires_at FROM records WHERE kind = ?1 AND tenant = ?2 AND key = ?3;

-- name: create_record
-- There must be none. Parameters: as put_record.
INSERT INTO records (kind, tenant, key, value, expires_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version;

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

-- name: lock_events
-- The last id; a store with concurrent transactions lets no other add events.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0);

-- name: add_events
-- Rows: id, when, event.
INSERT INTO events (id, at, event) VALUES /* rows */ (?, ?, ?);

-- name: last_event
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0);
