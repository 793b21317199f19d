"""A store for tests of attempts: it keeps updates and once-markers in lists, and its transactions end as the
test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast
from uuid import UUID

from duetime.engine.node.timer import LoopTimer, NodeClock
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.store import AttemptUpdate, OnceReply, Store
from duetime.testing.simulation.loop import SimulationLoop

JOB_ID = UUID(int=3)


def job(
    number: int = 3, attempt: int = 1, policies: bytes | None = None, checkpoint: bytes | None = None
) -> Claimed:
    return Claimed(
        UUID(int=number),
        attempt,
        "task",
        b"{}",
        0,
        "default",
        5,
        0,
        0,
        0,
        False,
        None,
        None,
        None,
        policies,
        None,
        checkpoint,
        "default",
    )


class FakeTransaction:
    """`answer`: what finishing it comes to: an answer, or something raised."""

    def __init__(self, answer: bool | BaseException = True, commit_takes: float = 0.0) -> None:
        self._answer = answer
        self._commit_takes = commit_takes
        self.connection = FakeConnection()
        self.finished: list[Settlement] = []
        self.abandoned = 0
        self.intact = True

    async def finish(self, settlement: Settlement) -> bool:
        await asyncio.sleep(self._commit_takes)
        self.finished.append(settlement)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    async def abandon(self) -> bool:
        self.abandoned += 1
        return self.intact


class FakeConnection:
    plain = "an attribute of the driver's own"

    def __init__(self) -> None:
        self.statements: list[str] = []

    async def execute(self, query: str, *arguments: Any, **options: Any) -> str:
        self.statements.append(query)
        return f"{query} {arguments}"


class FakeStore:
    def __init__(self) -> None:
        self.batches: list[list[AttemptUpdate]] = []
        self.refused: set[UUID] = set()
        self.markers: dict[tuple[UUID, str], UUID] = {}
        self.nonces: list[UUID] = []
        self.once_reply: OnceReply | None = None
        self.takes = 0.0
        self.problems: list[BaseException] = []  # raised one by one before anything works
        self.transaction = FakeTransaction()
        self.begun = 0

    @property
    def updates(self) -> list[AttemptUpdate]:
        return [update for batch in self.batches for update in batch]

    async def save_progress(self, updates: list[AttemptUpdate]) -> list[UUID]:
        await asyncio.sleep(self.takes)
        self._raise_problem()
        self.batches.append(list(updates))
        return [update.id for update in updates if update.id in self.refused]

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        self.nonces.append(nonce)
        self._raise_problem()
        if self.once_reply is not None:
            return self.once_reply
        return OnceReply.TAKEN if self.markers.setdefault((job_id, key), nonce) == nonce else OnceReply.KNOWN

    async def begin_transaction(self) -> FakeTransaction:
        await asyncio.sleep(self.takes)
        self._raise_problem()
        self.begun += 1
        return self.transaction

    def _raise_problem(self) -> None:
        if self.problems:
            raise self.problems.pop(0)


def virtual_clock() -> NodeClock:
    loop = asyncio.get_running_loop()
    return NodeClock(lambda: round(loop.time() * 1e6), LoopTimer, lambda: 0.5)


def make_writer(
    store: FakeStore,
    fenced: list[tuple[UUID, int]] | None = None,
    trusted: Callable[[], bool] = lambda: True,
    clock: Any = None,
) -> CheckpointWriter:
    told = fenced if fenced is not None else []
    return CheckpointWriter(
        cast(Store, store),
        clock or virtual_clock(),
        NodeId(7),
        trusted,
        lambda job_id, attempt: told.append((job_id, attempt)),
    )


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On an event loop whose time jumps ahead when there is nothing to do."""
    loop = SimulationLoop(Random(0))
    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()
