-- One listing is `list_live` or `list_past`, then the conditions that apply, then `list_order`. Counting is the same with `count_`.

-- name: count_limit
LIMIT :limit) AS counted;

-- name: list_if_states
AND state IN :states;

-- name: list_if_running
-- One index finds them: running jobs are few among the live.
AND claimable = 2;

-- name: list_if_dead
AND dead = 1;

-- name: list_if_scheduled
AND schedule IS NOT NULL;

-- name: list_if_undisposed
AND dead = 1 AND disposition IS NULL;
