-- From pending to running. Lanes travel as JSON [[queue, priority, low, tenant], ...], targets as a JSON list.

-- part: plain_of_lane
-- Jobs of the lane l that may always start.
j.state = 'pending' AND j.limit_key IS NULL AND j.overlap IS NULL
AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.tenant = json_extract(l.value, '$[3]')

-- part: restricted_of_lane
-- Jobs of the lane l that need a permit and do not wait for it.
j.state = 'pending' AND j.waits_for IS NULL AND (j.limit_key IS NOT NULL OR j.overlap IS NOT NULL)
AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.tenant = json_extract(l.value, '$[3]')

-- part: of_segment
-- Jobs whose id ends with one of these bytes.
hex(substr(j.id, 16)) IN (SELECT value FROM json_each(?2))

-- name: may_claim
-- Whether the node is alive, and whether there are restricted jobs, waiting jobs, restricted queues. Parameters: node, now.
SELECT
  EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND dead = 0 AND lease_until > ?2),
  EXISTS (
    SELECT 1 FROM jobs INDEXED BY jobs_restricted
    WHERE state = 'pending' AND waits_for IS NULL AND (limit_key IS NOT NULL OR overlap IS NOT NULL)
  ),
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_waiting WHERE waits_for IS NOT NULL),
  EXISTS (SELECT 1 FROM queues INDEXED BY queues_restricted WHERE paused = 1 OR max_running IS NOT NULL OR rate_count IS NOT NULL);

-- name: claimable
-- Row id, then the columns of a claimed job. CROSS JOIN keeps the loops in this order: lane by lane, each from its oldest due row, and the
-- LIMIT stops both. Parameters: lanes, targets, until, room.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, NULL, NULL
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_due
WHERE {plain_of_lane} AND j.due_at >= json_extract(l.value, '$[2]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2))
LIMIT ?4;

-- name: start_plain
-- Parameters: node, now, JSON list of row ids.
UPDATE jobs SET state = 'running', attempt = attempt + 1, node = ?1, claimed_at = ?2
WHERE rowid IN (SELECT value FROM json_each(?3));

-- name: restricted_candidates
-- A promoted job was due long ago: the lower bounds of the lanes do not apply.
-- Parameters: lanes, targets, until, whether to include jobs with a limit key, limit.
SELECT {j.candidate}
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_restricted
WHERE {restricted_of_lane} AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2)) AND (?4 OR j.limit_key IS NULL)
LIMIT ?5;

-- name: any_restricted
-- Parameters: lanes, targets, until.
SELECT 1
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_restricted
WHERE {restricted_of_lane} AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2))
LIMIT 1;

-- name: start
-- Rows: id, node, now, permit. Jobs without a limit key have no permit.
UPDATE jobs SET state = 'running', attempt = attempt + 1, node = s.column2, claimed_at = s.column3, waits_for = NULL, permit = s.column4
FROM (VALUES /* rows */ (?, ?, ?, ?)) AS s WHERE jobs.id = s.column1
RETURNING id, attempt, {claimed}, limit_key, permit;

-- name: next_due
-- Parameters: lanes, targets, after which instant for plain and for restricted jobs.
SELECT min(due_at) FROM (
  SELECT (
    SELECT j.due_at FROM jobs AS j INDEXED BY jobs_due
    WHERE {plain_of_lane} AND j.due_at > ?3
      AND j.target IN (SELECT value FROM json_each(?2))
    ORDER BY j.due_at LIMIT 1
  ) AS due_at FROM json_each(?1) AS l
  UNION ALL
  SELECT (
    SELECT j.due_at FROM jobs AS j INDEXED BY jobs_restricted
    WHERE {restricted_of_lane} AND j.due_at > ?4
      AND j.target IN (SELECT value FROM json_each(?2))
    ORDER BY j.due_at LIMIT 1
  ) FROM json_each(?1) AS l
);

-- name: named_candidates
-- Rows: id, attempt. CROSS JOIN: one look into the primary key for each.
SELECT {j.candidate}
FROM (VALUES /* rows */ (?, ?)) AS t CROSS JOIN jobs AS j
WHERE j.id = t.column1 AND j.attempt = t.column2 AND j.state = 'pending' AND j.waits_for IS NULL;

-- name: due_jobs
-- For a dispatcher: due jobs of each lane, and the next that falls due. Parameters: lanes, JSON list of the last bytes of the wanted ids,
-- until, limit.
SELECT d.id, d.attempt, d.queue, d.priority, d.tenant, d.due_at, d.limit_key IS NOT NULL OR d.overlap IS NOT NULL
FROM json_each(?1) AS l CROSS JOIN jobs AS d
WHERE d.rowid IN (
  SELECT * FROM (SELECT j.rowid FROM jobs AS j INDEXED BY jobs_due
    WHERE {plain_of_lane} AND j.due_at >= json_extract(l.value, '$[2]') AND j.due_at <= ?3 AND {of_segment}
    ORDER BY j.due_at LIMIT ?4)
  UNION ALL SELECT * FROM (SELECT j.rowid FROM jobs AS j INDEXED BY jobs_due
    WHERE {plain_of_lane} AND j.due_at > ?3 AND {of_segment}
    ORDER BY j.due_at LIMIT 1)
  UNION ALL SELECT * FROM (SELECT j.rowid FROM jobs AS j INDEXED BY jobs_restricted
    WHERE {restricted_of_lane} AND j.due_at <= ?3 AND {of_segment}
    ORDER BY j.due_at LIMIT ?4)
  UNION ALL SELECT * FROM (SELECT j.rowid FROM jobs AS j INDEXED BY jobs_restricted
    WHERE {restricted_of_lane} AND j.due_at > ?3 AND {of_segment}
    ORDER BY j.due_at LIMIT 1)
);
