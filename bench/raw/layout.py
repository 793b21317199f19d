"""The bare tables: a live table with an index on what is due, and a history; a row has the columns that a
scheduler needs."""

from __future__ import annotations

PAYLOAD = b'{"n": 1}'
POSTGRES = """
CREATE TABLE jobs (
  id uuid PRIMARY KEY, tenant text NOT NULL, schedule_id uuid, fire_time bigint NOT NULL,
  due_at bigint NOT NULL,
  queue text COLLATE "C" NOT NULL, priority smallint NOT NULL, state smallint NOT NULL DEFAULT 0,
  attempt int NOT NULL DEFAULT 0,
  failures int NOT NULL DEFAULT 0, node int, target text NOT NULL, payload bytea NOT NULL, policies bytea,
  owner text,
  labels bytea, unique_key text, created_at bigint NOT NULL, claimed_at bigint
);
CREATE INDEX jobs_due ON jobs (queue, priority, due_at) WHERE state = 0;
CREATE TABLE history (LIKE jobs, started_at bigint, finished_at bigint NOT NULL, result bytea);
CREATE INDEX history_id ON history (id);
"""
SQLITE = """
CREATE TABLE jobs (
  id BLOB PRIMARY KEY, tenant TEXT NOT NULL, fire_time INTEGER NOT NULL, due_at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0,
  node INTEGER, target TEXT NOT NULL,
  payload BLOB NOT NULL, created_at INTEGER NOT NULL, claimed_at INTEGER
);
CREATE INDEX jobs_due ON jobs (queue, priority, due_at) WHERE state = 0;
CREATE TABLE history (
  id BLOB PRIMARY KEY, tenant TEXT, fire_time INTEGER, due_at INTEGER, queue TEXT, priority INTEGER,
  state INTEGER, attempt INTEGER, node INTEGER, target TEXT, payload BLOB, created_at INTEGER,
  claimed_at INTEGER, started_at INTEGER, finished_at INTEGER, result BLOB
);
"""
