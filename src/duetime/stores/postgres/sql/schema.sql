-- The version of the schema.

-- name: has_schema
-- Read from the tables of the catalogue: a cached answer, such as that of to_regclass, may be older than the lock this session waited for.
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'duetime' AND c.relname = 'schema_version');

-- name: version
-- And when the first schema was made, which tells this database from others.
SELECT max(version) AS version, min(applied_at) AS home,
    (SELECT coalesce(compatible_from, version) FROM duetime.schema_version ORDER BY version DESC LIMIT 1) AS compatible_from
FROM duetime.schema_version;

-- name: living_versions
SELECT name, version FROM duetime.nodes WHERE NOT dead AND lease_until > clock_timestamp() ORDER BY id;

-- name: identity
-- The cluster, the database and a table in it: a dump that is restored makes a new table. The timeline of the log, and how far it is written;
-- on a replica, replayed.
SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
           (SELECT oid FROM pg_database WHERE datname = current_database()),
           'duetime.schema_version'::regclass::oid) AS data,
    CASE WHEN standby THEN '' ELSE 'timeline ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS server,
    CASE WHEN standby THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn AS log,
    CASE WHEN standby THEN pg_last_xact_replay_timestamp() ELSE clock_timestamp() END AS at
FROM pg_is_in_recovery() AS standby;

-- name: identity_of_tables
-- For a service that does not let its users see the server.
SELECT concat_ws('/', (SELECT oid FROM pg_database WHERE datname = current_database()),
           'duetime.schema_version'::regclass::oid) AS data, '' AS server,
    CASE WHEN standby THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn AS log,
    CASE WHEN standby THEN pg_last_xact_replay_timestamp() ELSE clock_timestamp() END AS at
FROM pg_is_in_recovery() AS standby;
