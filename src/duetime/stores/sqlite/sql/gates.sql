-- Jobs with a gate: until they are due they lie in the order of time, from then on by gate. What is walked through is bounded.

-- name: let_wait
-- What has fallen due takes its place behind its gate. Parameters: lanes, now, limit.
UPDATE jobs SET state = 'waiting' WHERE rowid IN (
  SELECT j.rowid FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_gated
  WHERE j.state = 'gated' AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?2
  LIMIT ?3
);

-- name: waiting_lanes
-- Every (queue, priority, target) in which a job waits behind a gate: from each the index leads to the next.
WITH RECURSIVE found (number) AS (
  SELECT (SELECT j.rowid FROM jobs AS j INDEXED BY jobs_waiting WHERE j.state = 'waiting' ORDER BY j.queue, j.priority, j.target LIMIT 1)
  UNION ALL
  SELECT coalesce(
    (
      SELECT n.rowid FROM jobs AS n INDEXED BY jobs_waiting
      WHERE n.state = 'waiting' AND n.queue = j.queue AND n.priority = j.priority AND n.target > j.target ORDER BY n.target LIMIT 1
    ), (
      SELECT n.rowid FROM jobs AS n INDEXED BY jobs_waiting
      WHERE n.state = 'waiting' AND n.queue = j.queue AND n.priority > j.priority ORDER BY n.priority, n.target LIMIT 1
    ), (
      SELECT n.rowid FROM jobs AS n INDEXED BY jobs_waiting
      WHERE n.state = 'waiting' AND n.queue > j.queue ORDER BY n.queue, n.priority, n.target LIMIT 1
    )
  ) FROM found AS f CROSS JOIN jobs AS j WHERE j.rowid = f.number
)
SELECT j.queue, j.priority, j.target FROM found AS f CROSS JOIN jobs AS j WHERE j.rowid = f.number;

-- name: waiting_gates
-- The gates of a lane and target from this one on (the first that comes after it), by name. Parameters: queue, priority, target, gate, limit.
WITH RECURSIVE found (gate, more) AS (
  SELECT (
    SELECT min(j.gate) FROM jobs AS j INDEXED BY jobs_waiting
    WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3 AND j.gate > ?4
  ), ?5
  UNION ALL
  SELECT (
    SELECT min(j.gate) FROM jobs AS j INDEXED BY jobs_waiting
    WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3 AND j.gate > f.gate
  ), f.more - 1 FROM found AS f WHERE f.gate IS NOT NULL AND f.more > 1
)
SELECT gate FROM found WHERE gate IS NOT NULL;

-- name: waiting_jobs
-- Behind one gate, oldest due first. Parameters: queue, priority, target, gate, until, limit, how many to leave out.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, j.gate
FROM jobs AS j INDEXED BY jobs_waiting
WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3 AND j.gate = ?4 AND j.due_at <= ?5
ORDER BY j.due_at LIMIT ?6 OFFSET ?7;

-- name: first_waiting_jobs
-- The first few behind each of these gates. Parameters: queue, priority, target, JSON list of gates, until, how many of each.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, j.gate
FROM json_each(?4) AS g CROSS JOIN jobs AS j WHERE j.rowid IN (
  SELECT n.rowid FROM jobs AS n INDEXED BY jobs_waiting
  WHERE n.state = 'waiting' AND n.queue = ?1 AND n.priority = ?2 AND n.target = ?3 AND n.gate = g.value AND n.due_at <= ?5
  ORDER BY n.due_at LIMIT ?6
);

-- name: upcoming_gated
-- Not due yet, but within the prefetch. Parameters: lanes, targets, until, limit.
SELECT j.rowid, j.id, j.attempt + 1, {j.claimed}, j.gate
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_gated
WHERE j.state = 'gated'
  AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2))
LIMIT ?4;

-- name: next_gated
-- As next_due. Parameters: lanes, targets, after which instant.
SELECT min(due_at) FROM (
  SELECT (
    SELECT j.due_at FROM jobs AS j INDEXED BY jobs_gated
    WHERE j.state = 'gated'
      AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at > ?3
      AND j.target IN (SELECT value FROM json_each(?2))
    ORDER BY j.due_at LIMIT 1
  ) AS due_at FROM json_each(?1) AS l
);

-- name: running_by_gate
-- And how many of them this node has. Parameter: node.
SELECT gate, count(*), sum(node = ?1) FROM jobs INDEXED BY jobs_gate WHERE gate IS NOT NULL AND node IS NOT NULL GROUP BY gate;

-- name: gate_spent
SELECT coalesce((SELECT spent_until FROM gates WHERE name = ?1), 0);

-- name: spend_gate
INSERT INTO gates (name, spent_until) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET spent_until = excluded.spent_until;

-- name: forget_gates
-- Whose starts are all earned back.
DELETE FROM gates WHERE spent_until < ?1;

-- name: earliest_spent
-- Of the gates of a lane and target whose rate is spent, until when the first of them is; one without a free place does not count.
-- Parameters: queue, priority, target, limit, from when on it counts as spent, places or null.
WITH RECURSIVE found (gate, more) AS (
  SELECT (
    SELECT min(j.gate) FROM jobs AS j INDEXED BY jobs_waiting
    WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3
  ), ?4
  UNION ALL
  SELECT (
    SELECT min(j.gate) FROM jobs AS j INDEXED BY jobs_waiting
    WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3 AND j.gate > f.gate
  ), f.more - 1 FROM found AS f WHERE f.gate IS NOT NULL AND f.more > 1
)
SELECT min(g.spent_until) FROM found AS f CROSS JOIN gates AS g
WHERE g.name = f.gate AND g.spent_until > ?5
  AND (?6 IS NULL OR ?6 > (SELECT count(*) FROM jobs AS r INDEXED BY jobs_gate WHERE r.gate = f.gate AND r.node IS NOT NULL));

-- name: upcoming_spent
-- As upcoming_gated: target, due_at and until when the rate of the gate is spent.
SELECT j.target, j.due_at, g.spent_until
FROM json_each(?1) AS l CROSS JOIN jobs AS j INDEXED BY jobs_gated CROSS JOIN gates AS g
WHERE j.state = 'gated'
  AND j.queue = json_extract(l.value, '$[0]') AND j.priority = json_extract(l.value, '$[1]') AND j.due_at <= ?3
  AND j.target IN (SELECT value FROM json_each(?2)) AND g.name = j.gate
LIMIT ?4;

-- name: keep_gates
-- Rows: id, gate.
INSERT INTO past_gates (job_id, gate) VALUES /* rows */ (?, ?) ON CONFLICT (job_id) DO NOTHING;

-- name: keep_gate
INSERT INTO past_gates (job_id, gate) SELECT id, gate FROM jobs WHERE id = ?1 AND state <> 'running' AND gate IS NOT NULL
ON CONFLICT (job_id) DO NOTHING;

-- name: waits_behind
-- Whether a due job of this lane waits behind one of these gates. Parameters: queue, priority, target, JSON list of gates.
SELECT EXISTS (
  SELECT 1 FROM json_each(?4) AS g CROSS JOIN jobs AS j INDEXED BY jobs_waiting
  WHERE j.state = 'waiting' AND j.queue = ?1 AND j.priority = ?2 AND j.target = ?3 AND j.gate = g.value
);
