"""The option `threads`: plain tasks are bounded apart from the others, and a node claims no more of them than it
can start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import duetime as dt
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually


class Gate:
    """Holds plain tasks until it opens, and counts them."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._lock = threading.Lock()
        self.inside = self.most = 0

    def open(self) -> None:
        self._open.set()

    def work(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self._open.wait(60)
        with self._lock:
            self.inside -= 1


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


def prepared(app: dt.App, gate: Gate) -> dt.App:
    app.task("plain")(gate.work)

    @app.task("other")
    async def other() -> None: ...

    return app


async def test_plain_tasks_beyond_the_threads_wait_in_the_store_and_others_run(
    app: dt.App, gate: Gate
) -> None:
    prepared(app, gate)
    async with app.running(concurrency=20, threads=2):
        jobs = [await app.submit("plain") for _ in range(6)]

        async def taken() -> bool:
            return gate.inside == 2

        await eventually(taken)
        for number in range(4):  # also in a queue that this node does not know yet
            job = await app.submit("other", queue=f"new-{number}" if number > 2 else "default")
            await job.wait("60s", raise_on_failure=True)

        async def only_those() -> bool:  # a job that Redis has assigned without a claim is given back
            return len(await app.jobs(state="running")) == gate.inside == 2

        await eventually(only_those)
        gate.open()
        for job in jobs:
            await job.wait("60s", raise_on_failure=True)
    assert gate.most == 2


async def test_another_node_takes_what_has_no_thread_here(make_app: MakeApp, gate: Gate) -> None:
    one, two = prepared(make_app(), gate), prepared(make_app(), gate)
    async with one.running(threads=2), two.running(threads=2):
        jobs = await one.submit_many([dt.NewJob("plain") for _ in range(4)])

        async def shared() -> bool:
            return gate.inside == 4

        await eventually(shared)
        gate.open()
        await asyncio.gather(*(job.wait("60s", raise_on_failure=True) for job in jobs))


@pytest.mark.parametrize("threads", [0, -1, 2.5, True, "many"])
async def test_a_wrong_number_of_threads_is_refused(client: dt.App, threads: object) -> None:
    with pytest.raises(dt.DuetimeError, match="threads"):
        async with client.running(threads=threads):
            pass
