"""Unique jobs: stored unless an earlier job matches the rule."""

from __future__ import annotations

from duetime.model.job import JobDraft
from duetime.model.unique import Admission, Rule
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.notifier import RedisNotifier, lane_hints_of
from duetime.stores.redis.rows import STATE_CODES, row_rest, uuid_of


class RedisUniqueJobs:
    def __init__(self, connection: RedisConnection, notifier: RedisNotifier) -> None:
        self._connection = connection
        self._notifier = notifier

    async def add(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        job_id, conflict, lanes = await self._connection.run(
            "add_unique",
            draft.id.bytes,
            row_rest(draft),
            "".join(str(STATE_CODES[state]) for state in rule.states),
            "" if rule.within is None else rule.within,
            str(rule.on_conflict),
            f"replaced by job {draft.id}",
            draft.due_at,
        )
        self._notifier.notify(lane_hints_of(lanes, draft.due_at))
        return Admission(uuid_of(job_id), conflict.decode() or None)
