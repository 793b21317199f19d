-- Small documents and the log of events.

-- name: get_record
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE kind = $1 AND tenant = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: put_record
-- $1 kind, $2 tenant, $3 key, $4 value, $5 expires_at. Whatever is there.
INSERT INTO duetime.records (kind, tenant, key, value, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, tenant, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at, version = excluded.version
RETURNING version;

-- name: create_record
-- Only if there is none; one that has expired is none.
INSERT INTO duetime.records AS r (kind, tenant, key, value, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, tenant, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at, version = excluded.version
    WHERE r.expires_at <= clock_timestamp()
RETURNING version;

-- name: replace_record
-- $6 the version that must be there.
UPDATE duetime.records SET value = $4, expires_at = $5, version = nextval('duetime.record_versions')
WHERE kind = $1 AND tenant = $2 AND key = $3 AND version = $6 AND (expires_at IS NULL OR expires_at > clock_timestamp())
RETURNING version;

-- name: delete_record
DELETE FROM duetime.records
WHERE kind = $1 AND tenant = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: list_records
-- $1 kind, $2 limit, $3 and $4 tenant and key after which to begin, $5 tenant.
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE kind = $1 AND tenant = $5 AND (tenant, key) > ($3, $4) AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY tenant, key LIMIT $2;

-- name: list_all_records
-- The same of every tenant.
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE kind = $1 AND (tenant, key) > ($3, $4) AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY tenant, key LIMIT $2;

-- name: forget_records
DELETE FROM duetime.records WHERE expires_at <= clock_timestamp();

-- name: add_events
-- $1 key of the lock, $2 events. The lock is taken before the first id is, and let go when everybody can see the last.
WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock($1::bigint)),
    added AS (INSERT INTO duetime.events (event)
        SELECT x.event FROM lock CROSS JOIN (SELECT * FROM unnest($2::bytea[]) WITH ORDINALITY AS x(event, place) ORDER BY place) x RETURNING id)
SELECT max(id) FROM added;

-- name: list_events
SELECT id, event FROM duetime.events WHERE id > $1 ORDER BY id LIMIT $2;

-- name: last_event
SELECT coalesce(max(id), 0) FROM duetime.events;

-- name: trim_events
-- $1 up to which id. The newest stays whatever its age: it tells which id was the last.
DELETE FROM duetime.events WHERE id <= $1 AND id < (SELECT max(id) FROM duetime.events);

-- name: last_old_event
-- $1 how old in microseconds. Ids and instants rise together.
SELECT coalesce((SELECT id FROM duetime.events WHERE at < clock_timestamp() - $1::bigint * interval '1 microsecond' ORDER BY id DESC LIMIT 1), 0);
