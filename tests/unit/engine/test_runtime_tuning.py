"""The collector is left as it was found, whatever happens meanwhile, and threads that compute give way to the
loop."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

import duetime as dt
from duetime.engine.node.loop import (
    DEFAULT_SWITCH_INTERVAL,
    OBJECTS_BETWEEN_COLLECTIONS,
    SWITCH_INTERVAL,
    spare_the_collector,
    without_collecting,
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold, share = gc.get_threshold(), sys.getswitchinterval()
    yield
    sys.setswitchinterval(share)
    gc.enable()
    gc.set_threshold(*threshold)


def test_a_node_looks_neither_at_what_stays_nor_after_every_few_jobs() -> None:
    frozen, stays = gc.get_freeze_count(), [[number] for number in range(2_000)]
    spare_the_collector()
    assert gc.get_freeze_count() > frozen + 1_000
    assert stays
    before = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(OBJECTS_BETWEEN_COLLECTIONS - 1_000)]
    assert gc.get_stats()[0]["collections"] == before
    kept += [[number] for number in range(2_000)]
    assert gc.get_stats()[0]["collections"] > before


@pytest.mark.parametrize("enabled", [True, False])
def test_it_rests_for_a_while(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with without_collecting():
        assert not gc.isenabled()
    assert gc.isenabled() is enabled


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), without_collecting():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_one_inside_another_ends_nothing() -> None:
    with without_collecting():
        with without_collecting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


async def test_thousands_of_jobs_are_drafted_without_it() -> None:
    app, seen = dt.App("memory://"), set[bool]()

    @app.task("noop")
    async def noop(n: int) -> None: ...

    def jobs() -> Iterator[dt.NewJob]:
        for n in range(3):
            seen.add(gc.isenabled())
            yield dt.NewJob(noop, {"n": n})

    await app.open()
    assert len(await app.submit_many(jobs())) == 3
    with pytest.raises(dt.InvalidInput):
        await app.submit_many(iter([dt.NewJob(noop, {"n": 1}), "no job"]))  # type: ignore[arg-type]  # that is the case under test
    await app.close()
    assert seen == {False}
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("found", "left"), [(DEFAULT_SWITCH_INTERVAL, SWITCH_INTERVAL), (0.02, 0.02), (0.0001, 0.0001)]
)
async def test_where_a_node_runs_threads_give_way_unless_the_user_chose_otherwise(
    found: float, left: float
) -> None:
    sys.setswitchinterval(found)
    async with dt.App("memory://").running():
        assert sys.getswitchinterval() == pytest.approx(left)
