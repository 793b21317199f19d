-- Only adds: a process of the version before goes on with the statements it knows, and leaves what is new to those who know it.

-- Of a pending job with a gate `state` says 'gated' until it is due and 'waiting' from then on, so that neither lies in the way of those
-- without. One whose schedule runs one at a time stays 'pending', among its like.
ALTER TABLE jobs ADD COLUMN gate TEXT;
ALTER TABLE schedules ADD COLUMN gate TEXT;
CREATE INDEX jobs_gated ON jobs (queue, priority, due_at) WHERE state = 'gated';
CREATE INDEX jobs_waiting ON jobs (queue, priority, target, gate, due_at) WHERE state = 'waiting';
CREATE INDEX jobs_gate ON jobs (gate) WHERE gate IS NOT NULL AND node IS NOT NULL;

-- Beside `history`, whose columns the version before counts.
CREATE TABLE past_gates (job_id BLOB NOT NULL PRIMARY KEY, gate TEXT NOT NULL) WITHOUT ROWID;

-- Until when the starts of a gate so far are paid for.
CREATE TABLE gates (name TEXT NOT NULL PRIMARY KEY, spent_until INTEGER NOT NULL) WITHOUT ROWID;

ALTER TABLE queues ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN pause_note TEXT;
ALTER TABLE queues ADD COLUMN paused_at INTEGER;
ALTER TABLE queues ADD COLUMN most INTEGER;
ALTER TABLE queues ADD COLUMN rate_count INTEGER;
ALTER TABLE queues ADD COLUMN rate_period INTEGER;
ALTER TABLE queues ADD COLUMN spent_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX queues_ruled ON queues (name) WHERE paused = 1 OR most IS NOT NULL OR rate_count IS NOT NULL;

-- Which earlier job counts as the same.
CREATE INDEX history_unique ON history (tenant, unique_key, created_at) WHERE unique_key IS NOT NULL;

-- What an attempt did once for all attempts; `nonce` tells a repeated call from a second one.
CREATE TABLE marks (job_id BLOB NOT NULL, key TEXT NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (job_id, key)) WITHOUT ROWID;
