-- Records and the event log.

-- name: get_record
-- Parameters: kind, tenant, key, now.
SELECT kind, tenant, name, value, version, expires_at FROM duetime_records
WHERE kind = ?1 AND tenant = ?2 AND name = ?3 AND (expires_at IS NULL OR expires_at > ?4);

-- name: lock_record
-- Whether it has expired or not.
SELECT kind, tenant, name, value, version, expires_at FROM duetime_records WHERE kind = ?1 AND tenant = ?2 AND name = ?3 FOR UPDATE;

-- name: create_record
-- There must be none. Parameters: as put_record.
INSERT INTO duetime_records (kind, tenant, name, value, expires_at) VALUES (?1, ?2, ?3, ?4, ?5);
SELECT LAST_INSERT_ID();

-- name: put_record
-- Replaces the row, and with it the version. Parameters: kind, tenant, key, value, expires_at.
REPLACE INTO duetime_records (kind, tenant, name, value, expires_at) VALUES (?1, ?2, ?3, ?4, ?5);
SELECT LAST_INSERT_ID();

-- name: delete_record
DELETE FROM duetime_records WHERE kind = ?1 AND tenant = ?2 AND name = ?3;

-- name: list_records
-- To be followed by the tenant, if of one, and `records_order`.
SELECT kind, tenant, name, value, version, expires_at FROM duetime_records
WHERE kind = :kind AND (tenant > :after_tenant OR tenant = :after_tenant AND name > :after_key) AND (expires_at IS NULL OR expires_at > :now);

-- name: records_order
ORDER BY tenant, name LIMIT :limit;

-- name: lock_events
-- The last id: no other transaction adds events until this one ends.
SELECT value FROM duetime_counters WHERE name = 'events' FOR UPDATE;

-- name: add_events
-- Rows: id, when, event.
INSERT INTO duetime_events (id, at, event) VALUES /* rows */ (?, ?, ?);
UPDATE duetime_counters SET value = (SELECT MAX(id) FROM duetime_events) WHERE name = 'events';

-- name: last_event
SELECT value FROM duetime_counters WHERE name = 'events';
