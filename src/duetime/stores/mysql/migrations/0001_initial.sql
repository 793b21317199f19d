-- The first schema, for MariaDB 10.6 or later and MySQL 8. It may be repeated: the server commits each
-- statement of its own.
--
-- Instants are microseconds since the epoch, UUIDs are 16 bytes, booleans are 0 and 1. Text is compared byte by byte.
--
-- There are no partial indexes, and every index costs about as much as the row itself: there are few, over generated columns. `claimable` is 0
-- for pending jobs that may always start, 1 for those that need a permit and do not wait for one, 2 for running jobs, and NULL for those that
-- wait: `waits_for` then names the permit, a limit key or '/' and the id of a schedule. A running job is its own permit; nothing is counted in
-- a second place. `permit_name` is 'waits ' and what a job waits for, or 'holds ' and the limit key of a running one: the index of a job that needs
-- no permit does not change when it starts.

-- Rows that a transaction changes to let no other do the same: `permits` while it decides about permits, `events` with the last id.
CREATE TABLE IF NOT EXISTS duetime_counters (name VARCHAR(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)
  ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO duetime_counters VALUES ('permits', 0), ('events', 0);

-- Hints for other processes: they ask for those after the last they know.
CREATE TABLE IF NOT EXISTS duetime_hints (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, sender BIGINT NOT NULL, hint VARCHAR(700) NOT NULL)
  ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Live jobs, in the order of model.job.Job. The exceptions are at the end:
-- `begun`: a job that was lost before, and whose worker has recorded that it starts.
-- `permit`: of a running job with a limit key; jobs under the same permit run one after the other.
-- `awaited`: a caller waits for its end. Node 0 means that an external worker runs the job; `due_at` is then the deadline for its report.
-- `held_by`, `held_since`: what `node` and `claimed_at` show. They are -1 instead of NULL: a row that does not become longer is changed in place.
CREATE TABLE IF NOT EXISTS duetime_jobs (
  id BINARY(16) NOT NULL PRIMARY KEY,
  tenant VARCHAR(128) NOT NULL,
  schedule_id BINARY(16),
  schedule VARCHAR(255),
  fire_time BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  queue VARCHAR(128) NOT NULL,
  priority SMALLINT NOT NULL,
  overlap VARCHAR(32),
  target VARCHAR(255) NOT NULL,
  target_spec LONGBLOB,
  payload LONGBLOB NOT NULL,
  policies LONGBLOB,
  owner VARCHAR(255),
  labels LONGBLOB,
  unique_key VARCHAR(512),
  retry_of BINARY(16),
  limit_key VARCHAR(512),
  state VARCHAR(12) NOT NULL DEFAULT 'pending',
  attempt INT NOT NULL DEFAULT 0,
  failures INT NOT NULL DEFAULT 0,
  losses INT NOT NULL DEFAULT 0,
  node BIGINT AS (NULLIF(held_by, -1)) VIRTUAL,
  cancel_requested TINYINT NOT NULL DEFAULT 0,
  checkpoint LONGBLOB,
  progress LONGBLOB,
  created_at BIGINT NOT NULL,
  claimed_at BIGINT AS (NULLIF(held_since, -1)) VIRTUAL,
  error LONGTEXT,
  begun TINYINT NOT NULL DEFAULT 0,
  permit BINARY(16),
  waits_for VARCHAR(512),
  awaited TINYINT NOT NULL DEFAULT 0,
  held_by BIGINT NOT NULL DEFAULT -1,
  held_since BIGINT NOT NULL DEFAULT -1,
  claimable TINYINT AS (CASE WHEN state = 'running' THEN 2 WHEN limit_key IS NULL AND overlap IS NULL THEN 0 WHEN waits_for IS NULL THEN 1 END)
    STORED,
  permit_name VARCHAR(518) AS (CASE WHEN state = 'running' THEN CONCAT('holds ', limit_key) ELSE CONCAT('waits ', waits_for) END) STORED,
  KEY duetime_jobs_due (claimable, queue, priority, tenant, due_at, held_by),
  KEY duetime_jobs_permit (permit_name, priority DESC, due_at),
  KEY duetime_jobs_schedule (schedule_id),
  UNIQUE KEY duetime_jobs_unique (tenant, unique_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin STATS_PERSISTENT = 1 STATS_AUTO_RECALC = 0;

-- Past jobs, in the order of model.job.Job. A job is deleted from the live ones in the same transaction, so it ends once. Not partitioned: the
-- key of a partitioned table would have to contain the day, and then neither the server nor one look could tell that an id is stored
-- already. Ids begin with the time, so that the oldest are next to each other and are deleted by primary key.
CREATE TABLE IF NOT EXISTS duetime_history (
  id BINARY(16) NOT NULL PRIMARY KEY,
  tenant VARCHAR(128) NOT NULL,
  schedule_id BINARY(16),
  schedule VARCHAR(255),
  fire_time BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  queue VARCHAR(128) NOT NULL,
  priority SMALLINT NOT NULL,
  overlap VARCHAR(32),
  target VARCHAR(255) NOT NULL,
  target_spec LONGBLOB,
  payload LONGBLOB NOT NULL,
  policies LONGBLOB,
  owner VARCHAR(255),
  labels LONGBLOB,
  unique_key VARCHAR(512),
  retry_of BINARY(16),
  limit_key VARCHAR(512),
  state VARCHAR(12) NOT NULL,
  attempt INT NOT NULL,
  failures INT NOT NULL,
  losses INT NOT NULL,
  node BIGINT,
  cancel_requested TINYINT NOT NULL,
  checkpoint LONGBLOB,
  progress LONGBLOB,
  created_at BIGINT NOT NULL,
  claimed_at BIGINT,
  started_at BIGINT,
  finished_at BIGINT NOT NULL,
  result LONGBLOB,
  error LONGTEXT,
  disposition VARCHAR(12),
  dead TINYINT AS (CASE WHEN state = 'dead' THEN 1 END) STORED,
  KEY duetime_history_dead (dead, id),
  KEY duetime_history_finished (finished_at),
  KEY duetime_history_named (schedule, id),
  KEY duetime_history_unique (tenant, unique_key, created_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS duetime_attempts (
  job_id BINARY(16) NOT NULL,
  attempt INT NOT NULL,
  node BIGINT,
  ending VARCHAR(16) NOT NULL,
  started_at BIGINT,
  finished_at BIGINT NOT NULL,
  error LONGTEXT,
  result LONGBLOB,
  PRIMARY KEY (job_id, attempt)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Markers that are taken once for all attempts of a job; the nonce tells a repeated call from a second one.
CREATE TABLE IF NOT EXISTS duetime_once_markers (
  job_id BINARY(16) NOT NULL, marker VARCHAR(512) NOT NULL, nonce BINARY(16) NOT NULL, PRIMARY KEY (job_id, marker)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The limit of each target, as the node that started last states it; it holds for every limit key of the target.
CREATE TABLE IF NOT EXISTS duetime_limits (target VARCHAR(255) NOT NULL PRIMARY KEY, max_running BIGINT, rate_count BIGINT, rate_period BIGINT)
  ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- In the order of model.permits.KeyUse: until when the starts under a rate are paid for, when the job that the rate holds up asks again, and
-- when the key was last served while others had to wait for room.
CREATE TABLE IF NOT EXISTS duetime_limit_keys (name VARCHAR(512) NOT NULL PRIMARY KEY, spent_until BIGINT NOT NULL, asks_at BIGINT NOT NULL, served_at BIGINT NOT NULL)
  ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS duetime_queues (
  name VARCHAR(128) NOT NULL PRIMARY KEY,
  paused TINYINT NOT NULL DEFAULT 0,
  pause_note TEXT,
  paused_at BIGINT,
  max_running BIGINT,
  rate_count BIGINT,
  rate_period BIGINT,
  spent_until BIGINT NOT NULL DEFAULT 0,
  restricted TINYINT AS (CASE WHEN paused = 1 OR max_running IS NOT NULL OR rate_count IS NOT NULL THEN 1 END) STORED,
  KEY duetime_queues_restricted (restricted)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Under which queues a tenant has stored jobs.
CREATE TABLE IF NOT EXISTS duetime_queue_tenants (tenant VARCHAR(128) NOT NULL, queue VARCHAR(128) NOT NULL, PRIMARY KEY (tenant, queue))
  ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS duetime_schedules (
  id BINARY(16) NOT NULL PRIMARY KEY,
  tenant VARCHAR(128) NOT NULL,
  name VARCHAR(255) NOT NULL,
  fires_when LONGTEXT NOT NULL,
  target VARCHAR(255) NOT NULL,
  target_spec LONGBLOB,
  payload LONGBLOB NOT NULL,
  policies LONGBLOB,
  queue VARCHAR(128) NOT NULL,
  priority SMALLINT NOT NULL,
  overlap VARCHAR(32),
  missed TEXT NOT NULL,
  jitter TEXT NOT NULL,
  start_at BIGINT,
  end_at BIGINT,
  max_runs BIGINT,
  owner VARCHAR(255),
  labels LONGBLOB,
  limit_key VARCHAR(512),
  version BIGINT NOT NULL,
  segment SMALLINT NOT NULL,
  paused TINYINT NOT NULL,
  pause_note TEXT,
  next_fire_time BIGINT,
  last_fire_time BIGINT,
  runs BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE KEY duetime_schedules_name (tenant, name),
  KEY duetime_schedules_due (paused, next_fire_time)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Each schedule after each change; the row of a removal has a number of its own.
CREATE TABLE IF NOT EXISTS duetime_schedule_versions (
  id BINARY(16) NOT NULL,
  tenant VARCHAR(128) NOT NULL,
  name VARCHAR(255) NOT NULL,
  fires_when LONGTEXT NOT NULL,
  target VARCHAR(255) NOT NULL,
  target_spec LONGBLOB,
  payload LONGBLOB NOT NULL,
  policies LONGBLOB,
  queue VARCHAR(128) NOT NULL,
  priority SMALLINT NOT NULL,
  overlap VARCHAR(32),
  missed TEXT NOT NULL,
  jitter TEXT NOT NULL,
  start_at BIGINT,
  end_at BIGINT,
  max_runs BIGINT,
  owner VARCHAR(255),
  labels LONGBLOB,
  limit_key VARCHAR(512),
  version BIGINT NOT NULL,
  paused TINYINT NOT NULL,
  at BIGINT NOT NULL,
  author VARCHAR(255),
  reason VARCHAR(16) NOT NULL,
  PRIMARY KEY (tenant, name, version),
  KEY duetime_schedule_versions_at (at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The id of a node that is gone is never given to another.
CREATE TABLE IF NOT EXISTS duetime_nodes (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(255) NOT NULL,
  roles TEXT NOT NULL,
  version VARCHAR(64) NOT NULL,
  started_at BIGINT NOT NULL,
  lease_until BIGINT NOT NULL,
  dead TINYINT NOT NULL DEFAULT 0,
  has_left TINYINT NOT NULL DEFAULT 0,
  KEY duetime_nodes_dead (dead, lease_until)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The number of the row is the version of the record, and each is used once.
CREATE TABLE IF NOT EXISTS duetime_records (
  version BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind VARCHAR(64) NOT NULL,
  tenant VARCHAR(128) NOT NULL,
  name VARCHAR(512) NOT NULL,
  value LONGBLOB NOT NULL,
  expires_at BIGINT,
  UNIQUE KEY duetime_records_name (kind, tenant, name),
  KEY duetime_records_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS duetime_events (id BIGINT NOT NULL PRIMARY KEY, at BIGINT NOT NULL, event LONGBLOB NOT NULL)
  ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
