-- Retention, the schema, and hints.

-- name: finished_before
-- Ids of past jobs, oldest end first. Parameters: instant, limit.
SELECT id FROM duetime_history FORCE INDEX (duetime_history_finished) WHERE finished_at < ?1 ORDER BY finished_at, id LIMIT ?2;

-- name: past_window
-- Parameters: end and id after which to begin, until when, limit.
SELECT id, id, target, finished_at FROM duetime_history FORCE INDEX (duetime_history_finished)
WHERE finished_at >= ?1 AND (finished_at > ?1 OR id > CAST(?2 AS BINARY)) AND finished_at < ?3 ORDER BY finished_at, id LIMIT ?4;

-- name: forget_attempts
-- Rows of this and the following: id.
DELETE a FROM duetime_attempts AS a FORCE INDEX (PRIMARY) WHERE job_id IN /* firsts */;

-- name: forget_markers
DELETE m FROM duetime_once_markers AS m FORCE INDEX (PRIMARY) WHERE job_id IN /* firsts */;

-- name: forget_jobs
DELETE h FROM duetime_history AS h FORCE INDEX (PRIMARY) WHERE id IN /* firsts */;

-- name: prune_nodes
DELETE FROM duetime_nodes WHERE dead = 1 AND lease_until < ?1 AND NOT EXISTS (SELECT 1 FROM duetime_jobs AS j WHERE j.claimable = 2 AND j.held_by = duetime_nodes.id);

-- name: time
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: add_hints
-- Rows: sender, hint.
INSERT INTO duetime_hints (sender, hint) VALUES /* rows */ (?, ?);

-- name: read_hints
-- Of others. Parameters: after which id, sender.
SELECT id, hint FROM duetime_hints WHERE id > ?1 AND sender <> ?2 ORDER BY id;

-- name: last_hint
SELECT COALESCE(MAX(id), 0) FROM duetime_hints;

-- name: forget_hints
-- Parameter: up to which id.
DELETE FROM duetime_hints WHERE id <= ?1 ORDER BY id LIMIT 10000;

-- name: table_names
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'duetime%';

-- name: tables_made_at
SELECT COALESCE(UNIX_TIMESTAMP(create_time), 0) FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'duetime_schema_version';

-- name: create_versions
CREATE TABLE IF NOT EXISTS duetime_schema_version (version INT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL, compatible_from INT) ENGINE = InnoDB;

-- name: read_version
SELECT COALESCE(MAX(version), 0), COALESCE(MIN(applied_at), 0),
    COALESCE((SELECT COALESCE(compatible_from, version) FROM duetime_schema_version ORDER BY version DESC LIMIT 1), 0)
FROM duetime_schema_version;

-- name: write_version
-- Parameters: version, now.
INSERT INTO duetime_schema_version (version, applied_at, compatible_from) VALUES (?1, ?2, ?3);

-- name: living_versions
SELECT name, version FROM duetime_nodes WHERE dead = 0 AND lease_until > ?1 ORDER BY id;

-- name: lock_migration
-- Of this session; migrations are no transactions. Parameters: a name, seconds to wait.
SELECT GET_LOCK(CONCAT('duetime ', DATABASE()), ?1);

-- name: unlock_migration
SELECT RELEASE_LOCK(CONCAT('duetime ', DATABASE()));
