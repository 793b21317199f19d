-- Small documents.

-- name: get_record
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE kind = $1 AND tenant = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: put_record
-- $1 kind, $2 tenant, $3 key, $4 value, $5 expires_at. Whether or not there is one.
INSERT INTO duetime.records (kind, tenant, key, value, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, tenant, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at, version = excluded.version
RETURNING version;

-- name: create_record
-- Only if there is none, or it has expired.
INSERT INTO duetime.records AS r (kind, tenant, key, value, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, tenant, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at, version = excluded.version
    WHERE r.expires_at <= clock_timestamp()
RETURNING version;

-- name: replace_record
-- $6 the expected version.
UPDATE duetime.records SET value = $4, expires_at = $5, version = nextval('duetime.record_versions')
WHERE kind = $1 AND tenant = $2 AND key = $3 AND version = $6 AND (expires_at IS NULL OR expires_at > clock_timestamp())
RETURNING version;

-- name: delete_record
-- $4 the expected version, or NULL for any.
DELETE FROM duetime.records
WHERE kind = $1 AND tenant = $2 AND key = $3 AND ($4::bigint IS NULL OR version = $4) AND (expires_at IS NULL OR expires_at > clock_timestamp())
RETURNING version;

-- name: list_records
-- $1 kind, $2 tenant, or NULL for all, $3 and $4 tenant and key after which to begin, $5 limit.
SELECT kind, tenant, key, value, version, expires_at FROM duetime.records
WHERE kind = $1 AND ($2::text IS NULL OR tenant = $2) AND (tenant, key) > ($3, $4) AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY tenant, key LIMIT $5;
