"""What the tests of attempts write on: a store that keeps notes and marks in lists, and transactions that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast
from uuid import UUID

from duetime.engine.alarm import LoopAlarm
from duetime.engine.clock import NodeClock
from duetime.engine.desk import WritingDesk
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.store import MarkReply, Note, Store
from duetime.testing.simulation.loop import SimulationLoop

JOB_ID = UUID(int=3)


def job(number: int = 3, attempt: int = 1, policies: bytes | None = None, checkpoint: bytes | None = None) -> Claimed:
    return Claimed(
        UUID(int=number), attempt, "task", b"{}", 0, "default", 5, 0, 0, 0, False, None, None, None, policies, None, checkpoint, "default"
    )


class PaperTransaction:
    """`answer`: what finishing it comes to: an answer, or something raised."""

    def __init__(self, answer: bool | BaseException = True, commit_takes: float = 0.0) -> None:
        self._answer = answer
        self._commit_takes = commit_takes
        self.connection = PaperConnection()
        self.finished: list[Settlement] = []
        self.abandoned = 0

    async def finish(self, settlement: Settlement) -> bool:
        await asyncio.sleep(self._commit_takes)
        self.finished.append(settlement)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    async def abandon(self) -> None:
        self.abandoned += 1


class PaperConnection:
    plain = "an attribute of the driver's own"

    def __init__(self) -> None:
        self.statements: list[str] = []

    async def execute(self, query: str, *arguments: Any, **options: Any) -> str:
        self.statements.append(query)
        return f"{query} {arguments}"


class PaperStore:
    def __init__(self) -> None:
        self.batches: list[list[Note]] = []
        self.refused: set[UUID] = set()
        self.marks: dict[tuple[UUID, str], UUID] = {}
        self.nonces: list[UUID] = []
        self.mark_reply: MarkReply | None = None
        self.takes = 0.0
        self.problems: list[BaseException] = []  # raised one by one before anything works
        self.transaction = PaperTransaction()
        self.begun = 0

    @property
    def notes(self) -> list[Note]:
        return [note for batch in self.batches for note in batch]

    async def save(self, notes: list[Note]) -> list[UUID]:
        await asyncio.sleep(self.takes)
        self._stumble()
        self.batches.append(list(notes))
        return [note.id for note in notes if note.id in self.refused]

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        self.nonces.append(nonce)
        self._stumble()
        if self.mark_reply is not None:
            return self.mark_reply
        return MarkReply.TAKEN if self.marks.setdefault((job_id, key), nonce) == nonce else MarkReply.KNOWN

    async def transact(self) -> PaperTransaction:
        await asyncio.sleep(self.takes)
        self._stumble()
        self.begun += 1
        return self.transaction

    def _stumble(self) -> None:
        if self.problems:
            raise self.problems.pop(0)


def virtual_clock() -> NodeClock:
    loop = asyncio.get_running_loop()
    return NodeClock(lambda: round(loop.time() * 1e6), LoopAlarm, lambda: 0.5)


def make_desk(
    store: PaperStore, fenced: list[tuple[UUID, int]] | None = None, trusted: Callable[[], bool] = lambda: True, clock: Any = None
) -> WritingDesk:
    told = fenced if fenced is not None else []
    return WritingDesk(
        cast(Store, store), clock or virtual_clock(), NodeId(7), trusted, lambda job_id, attempt: told.append((job_id, attempt))
    )


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On an event loop whose time jumps ahead when there is nothing to do."""
    loop = SimulationLoop(Random(0))
    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()
