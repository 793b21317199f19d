-- One listing is `list_live` or `list_past`, then the conditions that apply, then `list_order`. Counting is the same with `count_`.
-- Ids sort by fire time.

-- name: list_live
SELECT {live} FROM {jobs} WHERE tenant = :tenant;

-- name: count_live
SELECT count(*) FROM (SELECT 1 FROM {jobs} WHERE tenant = :tenant;

-- name: count_past
SELECT count(*) FROM (SELECT 1 FROM {history} WHERE tenant = :tenant;

-- name: list_past
SELECT {past} FROM {history} WHERE tenant = :tenant;

-- name: list_if_target
AND target IN (:target, :other_target);

-- name: list_if_due_after
AND due_at >= :due_after;

-- name: list_if_due_before
AND due_at < :due_before;

-- name: list_if_fire_after
AND id >= :fire_after;

-- name: list_if_fire_before
AND id < :fire_before;

-- name: list_if_before
AND id < :before;

-- name: list_order
ORDER BY id DESC LIMIT :limit;
