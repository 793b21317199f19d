-- Only adds, as the one before. What the service needs: records, events, versions of schedules, workers outside.

-- Nobody's own id: `node` of a job that was handed over to a worker outside. So it counts as running wherever `node` is asked for, and no
-- node ever has it. `due_at` is then the deadline of its report.
CREATE INDEX jobs_outside ON jobs (due_at) WHERE node = 0;

-- AUTOINCREMENT: the id is the record's version, and each is given once.
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

-- AUTOINCREMENT: an id is never given again, and the last one is known when its event is gone.
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, event BLOB NOT NULL);

-- What a schedule was after each change, in the columns of `schedules`; the row of a removal has a number of its own.
CREATE TABLE schedule_versions (
  id BLOB NOT NULL,
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
  labels BLOB,
  gate TEXT,
  at INTEGER NOT NULL,
  author TEXT,
  change TEXT NOT NULL,
  PRIMARY KEY (tenant, name, version)
);
CREATE INDEX schedule_versions_at ON schedule_versions (at);
INSERT INTO schedule_versions SELECT
  id, tenant, name, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at, fires_when,
  target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs, owner, labels, gate,
  updated_at, NULL, CASE WHEN version = 1 THEN 'created' WHEN paused = 1 THEN 'paused' ELSE 'replaced' END
FROM schedules;
