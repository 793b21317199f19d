-- The version of the schema.

-- name: has_schema
-- Read from the tables of the catalogue: a cached answer, such as that of to_regclass, may be older than the lock this session waited for.
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'duetime' AND c.relname = 'schema_version');

-- name: version
-- And when the first schema was made, which tells this database from others.
SELECT max(version) AS version, min(applied_at) AS home FROM duetime.schema_version;

-- name: position
-- How far the log is written; on a replica, replayed.
SELECT CASE WHEN standby THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn AS log,
    CASE WHEN standby THEN pg_last_xact_replay_timestamp() ELSE clock_timestamp() END AS at
FROM pg_is_in_recovery() AS standby;
