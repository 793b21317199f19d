-- From pending to running. Lanes travel as JSON [[queue, priority, low], ...], targets as a JSON list.
-- A candidate is its row id, then the columns of a model.job.Claimed.

-- name: may_claim
-- Whether the node may, and whether anything is there that has to be looked at with care. Parameters: node, now.
SELECT
  EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND dead = 0 AND lease_until > ?2),
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_exclusive WHERE state = 'pending' AND overlap IS NOT NULL),
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_waiting WHERE state = 'waiting')
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_gated WHERE state = 'gated'),
  EXISTS (SELECT 1 FROM queues INDEXED BY queues_ruled WHERE paused = 1 OR most IS NOT NULL OR rate_count IS NOT NULL);

-- name: claimable
-- CROSS JOIN keeps the loops in this order: lane by lane, each from its oldest due row, and the LIMIT stops both.
-- Parameters: lanes, targets, until, room.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, NULL
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_due
WHERE j.state = 'pending' AND j.overlap IS NULL
  AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]')
  AND j.due_at >= json_extract(l.value, '$[2]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2))
LIMIT ?4;

-- name: any_exclusive
SELECT EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_exclusive WHERE state = 'pending' AND overlap IS NOT NULL);

-- name: claimable_exclusive
-- Those nobody stands in the way of, with or without a gate. Several may be of one schedule: the caller takes its oldest fire.
-- Parameters: lanes, targets, until, limit, whether with a gate.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, j.gate
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_exclusive
WHERE j.state = 'pending' AND j.overlap IS NOT NULL
  AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2)) AND (j.gate IS NOT NULL) = ?5
  AND NOT EXISTS (SELECT 1 FROM jobs AS s WHERE s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id)
LIMIT ?4;

-- name: claim
-- Parameters: node, now, JSON list of row ids.
UPDATE jobs SET state = 'running', attempt = attempt + 1, node = ?1, claimed_at = ?2
WHERE rowid IN (SELECT value FROM json_each(?3));

-- name: blocked
-- Due, unstarted, and an earlier job of the schedule has started: those whose policy is to do something about it.
SELECT j.id, j.overlap, s.id, s.node
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_exclusive CROSS JOIN jobs AS s
WHERE j.state = 'pending' AND j.overlap IS NOT NULL
  AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2)) AND j.attempt = 0
  AND s.schedule_id = j.schedule_id AND s.attempt > 0 AND s.id <> j.id
  AND (j.overlap = 'skip' OR (j.overlap = 'cancel_previous' AND s.cancel_requested = 0));

-- name: next_due
-- Of jobs without a gate; and whether there are any with one, and any queue with rules. Parameters: lanes, targets, after which instant.
SELECT
  min(due_at),
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_waiting WHERE state = 'waiting')
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_gated WHERE state = 'gated'),
  EXISTS (SELECT 1 FROM queues INDEXED BY queues_ruled WHERE paused = 1 OR most IS NOT NULL OR rate_count IS NOT NULL)
FROM (
  SELECT (
    SELECT j.due_at FROM jobs AS j INDEXED BY jobs_due
    WHERE j.state = 'pending' AND j.overlap IS NULL
      AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at > ?3
      AND j.target IN (SELECT value FROM json_each(?2))
    ORDER BY j.due_at LIMIT 1
  ) AS due_at FROM json_each(?1) AS l
  UNION ALL
  SELECT (
    SELECT j.due_at FROM jobs AS j INDEXED BY jobs_exclusive
    WHERE j.state = 'pending' AND j.overlap IS NOT NULL
      AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at > ?3
      AND j.target IN (SELECT value FROM json_each(?2))
    ORDER BY j.due_at LIMIT 1
  ) FROM json_each(?1) AS l
);

-- name: any_due
-- Whether a job of these lanes is due, whatever holds it up. Parameters: lanes, targets, now.
SELECT EXISTS (
  SELECT 1 FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_due
  WHERE j.state = 'pending' AND j.overlap IS NULL AND j.queue = json_extract(l.value, '$[0]')
    AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3 AND j.target IN (SELECT value FROM json_each(?2))
) OR EXISTS (
  SELECT 1 FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_exclusive
  WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.queue = json_extract(l.value, '$[0]')
    AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3 AND j.target IN (SELECT value FROM json_each(?2))
) OR EXISTS (
  SELECT 1 FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_gated
  WHERE j.state = 'gated' AND j.queue = json_extract(l.value, '$[0]')
    AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3 AND j.target IN (SELECT value FROM json_each(?2))
) OR EXISTS (
  SELECT 1 FROM json_each(?1) AS l CROSS JOIN json_each(?2) AS t CROSS JOIN jobs AS j INDEXED BY jobs_waiting
  WHERE j.state = 'waiting' AND j.queue = json_extract(l.value, '$[0]')
    AND j.priority = json_extract(l.value, '$[1]') AND j.target = t.value
);

-- name: ask_to_stop
-- Of a job that stands in the way of a later one; a retry that waits need not wait any longer to be told. Parameters: id, now.
UPDATE jobs SET cancel_requested = 1, due_at = CASE WHEN state = 'running' THEN due_at ELSE min(due_at, ?2) END WHERE id = ?1
RETURNING queue, priority, due_at;
