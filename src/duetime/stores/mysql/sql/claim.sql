-- From pending to running. Statements about one lane: ?1 queue, ?2 priority, ?3 from which instant, ?4 tenant, ?5 targets. Rows of those about
-- several lanes: the same first four.

-- name: may_claim
-- Whether the node is alive, and whether there are restricted jobs, waiting jobs, restricted queues. Parameters: node, now.
SELECT
  EXISTS (SELECT 1 FROM duetime_nodes WHERE id = ?1 AND dead = 0 AND lease_until > ?2),
  EXISTS (SELECT 1 FROM duetime_jobs WHERE claimable = 1),
  EXISTS (SELECT 1 FROM duetime_jobs WHERE permit_name > 'waits '),
  EXISTS (SELECT 1 FROM duetime_queues WHERE restricted = 1);

-- name: claimable
-- The id, then the columns of a claimed job. Parameters: the lane, targets, until, room.
SELECT id, id, attempt + 1, {claimed}, NULL, NULL FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
WHERE claimable = 0 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at >= ?3 AND due_at <= ?6 AND target IN ?5
ORDER BY due_at LIMIT ?7 FOR UPDATE SKIP LOCKED;

-- name: start_plain
-- Parameters: node, now, ids.
UPDATE duetime_jobs FORCE INDEX (PRIMARY) SET state = 'running', attempt = attempt + 1, held_by = ?1, held_since = ?2 WHERE id IN ?3;

-- name: restricted_candidates
-- A promoted job was due long ago: the lower bound of the lane does not apply.
-- Parameters: the lane, targets, until, whether to include jobs with a limit key, limit.
SELECT {candidate} FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
WHERE claimable = 1 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at <= ?6 AND target IN ?5 AND (?7 OR limit_key IS NULL)
ORDER BY due_at LIMIT ?8 FOR UPDATE SKIP LOCKED;

-- name: any_restricted
-- Parameters: targets, until.
SELECT 1 FROM (SELECT queue, priority, due_at AS low, tenant FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?)) AS l
WHERE EXISTS (SELECT 1 FROM duetime_jobs AS j FORCE INDEX (duetime_jobs_due)
  WHERE j.claimable = 1 AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant AND j.due_at <= ?2 AND j.target IN ?1)
LIMIT 1;

-- name: due_lanes
-- Those with jobs of a kind that are due, whatever their target. Parameters: the value of `claimable`, until.
SELECT l.queue, l.priority, l.low, l.tenant
FROM (SELECT queue, priority, due_at AS low, tenant FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?)) AS l
WHERE EXISTS (SELECT 1 FROM duetime_jobs AS j FORCE INDEX (duetime_jobs_due)
  WHERE j.claimable = ?1 AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant AND j.due_at <= ?2
    AND (?1 OR j.due_at >= l.low));

-- name: start
-- Rows: id, node, now, permit. Jobs without a limit key have no permit.
UPDATE (SELECT id, held_by AS node, held_since AS now, permit FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?)) AS s
STRAIGHT_JOIN duetime_jobs AS j FORCE INDEX (PRIMARY) ON j.id = s.id
SET j.state = 'running', j.attempt = j.attempt + 1, j.held_by = s.node, j.held_since = s.now, j.waits_for = NULL, j.permit = s.permit;
SELECT id, attempt, {claimed}, limit_key, permit FROM duetime_jobs FORCE INDEX (PRIMARY) WHERE id IN /* firsts */;

-- name: next_due
-- Parameters: targets, after which instant for plain and for restricted jobs.
SELECT (SELECT j.due_at FROM duetime_jobs AS j FORCE INDEX (duetime_jobs_due)
  WHERE j.claimable = 0 AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant AND j.due_at > ?2 AND j.target IN ?1
  ORDER BY j.due_at LIMIT 1)
FROM (SELECT queue, priority, due_at AS low, tenant FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?)) AS l
UNION ALL
SELECT (SELECT j.due_at FROM duetime_jobs AS j FORCE INDEX (duetime_jobs_due)
  WHERE j.claimable = 1 AND j.queue = l.queue AND j.priority = l.priority AND j.tenant = l.tenant AND j.due_at > ?3 AND j.target IN ?1
  ORDER BY j.due_at LIMIT 1)
FROM (SELECT queue, priority, due_at AS low, tenant FROM duetime_jobs WHERE FALSE UNION ALL VALUES /* rows */ (?, ?, ?, ?)) AS l;

-- name: named_candidates
-- Rows: id, attempt.
SELECT {candidate} FROM duetime_jobs FORCE INDEX (PRIMARY)
WHERE id IN /* firsts */ AND (id, attempt) IN (/* rows */ (?, ?)) AND claimable < 2 FOR UPDATE SKIP LOCKED;

-- name: due_jobs
-- For a dispatcher: due jobs of the lane, and the next that falls due. Parameters: the lane (?5: the last bytes of the wanted ids), until, limit.
(SELECT id, attempt, queue, priority, tenant, due_at, 0 FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 0 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at >= ?3 AND due_at <= ?6 AND HEX(SUBSTR(id, 16)) IN ?5
  ORDER BY due_at LIMIT ?7)
UNION ALL (SELECT id, attempt, queue, priority, tenant, due_at, 0 FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 0 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at > ?6 AND HEX(SUBSTR(id, 16)) IN ?5 ORDER BY due_at LIMIT 1)
UNION ALL (SELECT id, attempt, queue, priority, tenant, due_at, 1 FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 1 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at <= ?6 AND HEX(SUBSTR(id, 16)) IN ?5
  ORDER BY due_at LIMIT ?7)
UNION ALL (SELECT id, attempt, queue, priority, tenant, due_at, 1 FROM duetime_jobs FORCE INDEX (duetime_jobs_due)
  WHERE claimable = 1 AND queue = ?1 AND priority = ?2 AND tenant = ?4 AND due_at > ?6 AND HEX(SUBSTR(id, 16)) IN ?5 ORDER BY due_at LIMIT 1);
