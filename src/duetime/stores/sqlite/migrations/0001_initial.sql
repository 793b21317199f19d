-- The first schema.
--
-- Instants are microseconds since the epoch, UUIDs are 16 bytes, booleans are 0 and 1.
--
-- Claims read pending jobs from one of two indexes: `jobs_due` holds those that may always start, `jobs_restricted` those that need a permit
-- (they have a limit key, or their schedule runs one job at a time). A due job that finds no permit leaves its index: `waits_for` then names
-- the permit, a limit key or '/' and the id of a schedule. A running job is its own permit; nothing is counted in a second place.

CREATE TABLE schema_version (version INTEGER NOT NULL, compatible_from INTEGER);

-- Raised by every change that other processes should notice soon; their pollers compare it. Heartbeats do not raise it.
CREATE TABLE changes (count INTEGER NOT NULL);
INSERT INTO changes VALUES (0);

-- Live jobs, in the order of model.job.Job. The exceptions are at the end:
-- `begun`: a job that was lost before, and whose worker has recorded that it starts.
-- `permit`: of a running job with a limit key; jobs under the same permit run one after the other.
-- Node 0 means that an external worker runs the job; `due_at` is then the deadline for its report.
CREATE TABLE jobs (
  id BLOB NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  schedule_id BLOB,
  schedule TEXT,
  fire_time INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  overlap TEXT,
  target TEXT NOT NULL,
  target_spec BLOB,
  payload BLOB NOT NULL,
  policies BLOB,
  owner TEXT,
  labels BLOB,
  unique_key TEXT,
  retry_of BLOB,
  limit_key TEXT,
  state TEXT NOT NULL DEFAULT 'pending',
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  node INTEGER,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  checkpoint BLOB,
  progress BLOB,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  error TEXT,
  begun INTEGER NOT NULL DEFAULT 0,
  permit BLOB,
  waits_for TEXT
);
CREATE INDEX jobs_due ON jobs (queue, priority, tenant, due_at) WHERE state = 'pending' AND limit_key IS NULL AND overlap IS NULL;
CREATE INDEX jobs_restricted ON jobs (queue, priority, tenant, due_at)
  WHERE state = 'pending' AND waits_for IS NULL AND (limit_key IS NOT NULL OR overlap IS NOT NULL);
CREATE INDEX jobs_waiting ON jobs (waits_for, priority DESC, due_at, queue, tenant) WHERE waits_for IS NOT NULL;
CREATE INDEX jobs_permit ON jobs (limit_key, permit) WHERE permit IS NOT NULL;
CREATE INDEX jobs_node ON jobs (node) WHERE node IS NOT NULL;
CREATE INDEX jobs_external ON jobs (due_at) WHERE node = 0;
CREATE INDEX jobs_cancelled ON jobs (node) WHERE cancel_requested = 1;
CREATE INDEX jobs_schedule ON jobs (schedule_id, attempt) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_named ON jobs (schedule, id) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON jobs (tenant, unique_key) WHERE unique_key IS NOT NULL;
-- At most one started job of a schedule that runs one at a time, enforced by the file itself.
CREATE UNIQUE INDEX jobs_started ON jobs (schedule_id) WHERE overlap IS NOT NULL AND attempt > 0;

-- Past jobs, in the order of model.job.Job. A job is deleted from `jobs` in the same transaction, so it ends once.
CREATE TABLE history AS SELECT
  id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec, payload, policies, owner, labels,
  unique_key, retry_of, limit_key, state, attempt, failures, losses, node, cancel_requested, checkpoint, progress, created_at, claimed_at,
  CAST(NULL AS INTEGER) AS started_at, CAST(NULL AS INTEGER) AS finished_at, NULL AS result, error, CAST(NULL AS TEXT) AS disposition
FROM jobs WHERE FALSE;
CREATE UNIQUE INDEX history_id ON history (id);
CREATE INDEX history_finished ON history (finished_at);
CREATE INDEX history_named ON history (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX history_dead ON history (id) WHERE state = 'dead';
CREATE INDEX history_unique ON history (tenant, unique_key, created_at) WHERE unique_key IS NOT NULL;

CREATE TABLE attempts (
  job_id BLOB NOT NULL,
  attempt INTEGER NOT NULL,
  node INTEGER,
  ending TEXT NOT NULL,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  error TEXT,
  result BLOB,
  PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;

-- Markers that are taken once for all attempts of a job; the nonce tells a repeated call from a second one.
CREATE TABLE once_markers (job_id BLOB NOT NULL, key TEXT NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (job_id, key)) WITHOUT ROWID;

-- The limit of each target, as the node that started last states it; it holds for every limit key of the target.
CREATE TABLE limits (target TEXT NOT NULL PRIMARY KEY, max_running INTEGER, rate_count INTEGER, rate_period INTEGER) WITHOUT ROWID;

-- In the order of model.permits.KeyUse: until when the starts under a rate are paid for, when the job that the rate holds up asks again, and
-- when the key was last served while others had to wait for room.
CREATE TABLE limit_keys (name TEXT NOT NULL PRIMARY KEY, spent_until INTEGER, asks_at INTEGER, served_at INTEGER) WITHOUT ROWID;

CREATE TABLE queues (
  name TEXT NOT NULL PRIMARY KEY,
  paused INTEGER NOT NULL DEFAULT 0,
  pause_note TEXT,
  paused_at INTEGER,
  max_running INTEGER,
  rate_count INTEGER,
  rate_period INTEGER,
  spent_until INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
-- Under which queues a tenant has stored jobs.
CREATE TABLE queue_tenants (tenant TEXT NOT NULL, queue TEXT NOT NULL, PRIMARY KEY (tenant, queue)) WITHOUT ROWID;
CREATE INDEX queues_restricted ON queues (name) WHERE paused = 1 OR max_running IS NOT NULL OR rate_count IS NOT NULL;

CREATE TABLE schedules (
  id BLOB NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  fires_when TEXT NOT NULL,
  target TEXT NOT NULL,
  target_spec BLOB,
  payload BLOB NOT NULL,
  policies BLOB,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  overlap TEXT,
  missed TEXT NOT NULL,
  jitter TEXT NOT NULL,
  start_at INTEGER,
  end_at INTEGER,
  max_runs INTEGER,
  owner TEXT,
  labels BLOB,
  limit_key TEXT,
  version INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  pause_note TEXT,
  next_fire_time INTEGER,
  last_fire_time INTEGER,
  runs INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX schedules_name ON schedules (tenant, name);
CREATE INDEX schedules_due ON schedules (next_fire_time) WHERE paused = 0;

-- Each schedule after each change; the row of a removal has a number of its own.
CREATE TABLE schedule_versions AS SELECT
  id, tenant, name, fires_when, target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs,
  owner, labels, limit_key, version, paused, updated_at AS at, CAST(NULL AS TEXT) AS author, CAST(NULL AS TEXT) AS change
FROM schedules WHERE FALSE;
CREATE UNIQUE INDEX schedule_versions_number ON schedule_versions (tenant, name, version);
CREATE INDEX schedule_versions_at ON schedule_versions (at);

-- AUTOINCREMENT: the id of a node that is gone is never given to another. `lock_file` is the inode of the file in which it holds its lock.
CREATE TABLE nodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  roles TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  dead INTEGER NOT NULL DEFAULT 0,
  has_left INTEGER NOT NULL DEFAULT 0, -- it ended in an orderly way
  lock_file INTEGER
);

-- AUTOINCREMENT: the id is the version of the record, and each is used once.
CREATE TABLE records (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  expires_at INTEGER
);
CREATE UNIQUE INDEX records_name ON records (kind, tenant, key);
CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;

-- AUTOINCREMENT: an id is never used again, and the last one stays known when its event is deleted.
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, event BLOB NOT NULL);
