"""What every rule of the machine stands on: a store, a expected, two workers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft, JobFilter
from duetime.model.lease import NodeId
from duetime.model.schedule import Firing
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import DAY, QUEUE, TENANT, claim, new_id, request
from duetime.testing.conformance.model import ExpectedState

PRIORITIES = (9, 5)
Answer = TypeVar("Answer")


class MachineBase(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = self.open_store()
        self.expected = ExpectedState()
        self.workers: list[NodeId] = []
        self.steps: list[Firing] = []
        self.paused = False  # the queue
        self.hand_schedules = [new_id(0), new_id(0)]

    def open_store(self) -> Store:
        """A store on fresh, migrated data. Coroutines of it run on `self.loop`, by way of `self.run`."""
        raise NotImplementedError

    def run(self, verb: Coroutine[Any, Any, Answer]) -> Answer:
        return self.loop.run_until_complete(verb)

    def now(self) -> Micros:
        return self.run(self.store.time())

    def add(self, draft: JobDraft) -> None:
        [answer] = self.run(self.store.add_jobs([draft]))
        if answer == draft.id:
            self.expected.accept(draft)
        else:
            self.expected.shares_key(answer, draft)

    def claim_for(self, node: NodeId, room: int, prefetch: Micros, sweep: bool = True) -> None:
        lanes = [Lane(QUEUE, priority, 0 if sweep else self.now() - DAY) for priority in PRIORITIES]
        claimed = self.run(
            claim(self.store, request(node, *lanes, room=room, prefetch=prefetch, sweep=sweep))
        )
        assert len(claimed) <= (0 if self.paused else room)
        until = self.now() + prefetch
        for row in claimed:
            assert row.due_at <= until, "claimed early"
            self.expected.start(row, node)

    def listed(self) -> list[Job]:
        return self.run(self.store.list_jobs(JobFilter(TENANT), 10_000))
