-- Instants are microseconds since the epoch, UUIDs are 16 bytes, booleans are 0 and 1.

CREATE TABLE schema_version (version INTEGER NOT NULL);

-- Raised by whatever other processes should hear of soon; their watchers compare it. Heartbeats leave it alone.
CREATE TABLE pulse (count INTEGER NOT NULL);
INSERT INTO pulse VALUES (0);

-- Live jobs. The columns of both job tables stand in the order of model.job.Job, those of a draft first.
-- `begun`: a job lost before, whose worker has announced that it starts.
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
  begun INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX jobs_due ON jobs (queue, priority, due_at) WHERE state = 'pending' AND overlap IS NULL;
CREATE INDEX jobs_exclusive ON jobs (queue, priority, due_at) WHERE state = 'pending' AND overlap IS NOT NULL;
CREATE INDEX jobs_node ON jobs (node) WHERE node IS NOT NULL;
CREATE INDEX jobs_cancelled ON jobs (node) WHERE cancel_requested = 1;
CREATE INDEX jobs_schedule ON jobs (schedule_id, attempt) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_fired ON jobs (fire_time);
CREATE INDEX jobs_named ON jobs (schedule, fire_time) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON jobs (tenant, unique_key) WHERE unique_key IS NOT NULL;
-- One started job per exclusive schedule, whatever a claim believes.
CREATE UNIQUE INDEX jobs_started ON jobs (schedule_id) WHERE overlap IS NOT NULL AND attempt > 0;

-- Past jobs. The delete from `jobs` in the same transaction makes a completion single.
CREATE TABLE history (
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
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  node INTEGER,
  cancel_requested INTEGER NOT NULL,
  checkpoint BLOB,
  progress BLOB,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  result BLOB,
  error TEXT,
  disposition TEXT
);
CREATE INDEX history_fired ON history (fire_time);
CREATE INDEX history_finished ON history (finished_at);
CREATE INDEX history_named ON history (schedule, fire_time) WHERE schedule IS NOT NULL;
CREATE INDEX history_dead ON history (fire_time) WHERE state = 'dead';

CREATE TABLE attempts (
  job_id BLOB NOT NULL,
  attempt INTEGER NOT NULL,
  node INTEGER,
  ending TEXT NOT NULL,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;

CREATE TABLE queues (name TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE schedules (
  id BLOB NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  pause_note TEXT,
  next_fire_time INTEGER,
  last_fire_time INTEGER,
  runs INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  fires_when TEXT NOT NULL,
  target TEXT NOT NULL,
  target_spec BLOB,
  payload BLOB NOT NULL,
  policies BLOB,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  overlap TEXT,
  missed TEXT NOT NULL,
  jitter INTEGER NOT NULL,
  start_at INTEGER,
  end_at INTEGER,
  max_runs INTEGER,
  owner TEXT,
  labels BLOB
);
CREATE UNIQUE INDEX schedules_name ON schedules (tenant, name);
CREATE INDEX schedules_due ON schedules (next_fire_time) WHERE paused = 0;

-- AUTOINCREMENT: the id of a node that is gone is never given to another.
CREATE TABLE nodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  roles TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  dead INTEGER NOT NULL DEFAULT 0,
  lock_file INTEGER
);

CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder INTEGER,
  token INTEGER NOT NULL
) WITHOUT ROWID;
