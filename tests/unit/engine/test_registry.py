"""The registry: task defaults as other processes read them, and when a node writes them."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.engine.node.registry import (
    ALL_TENANTS,
    DEFAULTS_TTL,
    TASK,
    TaskDefaultsPublisher,
    from_bytes,
    published,
    to_bytes,
)
from duetime.engine.submit.build import NO_DEFAULTS, Defaults
from duetime.model.instant import SECOND
from duetime.stores.memory import MemoryStore

DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    "own",
    [
        NO_DEFAULTS,
        Defaults("billing", -3, "at_most_once", 7),
        Defaults(limit=dt.Limit(2)),
        Defaults(limit=dt.Limit(2, per="owner", rate="10/1m")),
        Defaults(unique=dt.Unique()),
        Defaults(unique=dt.Unique(["a"], ("pending", "running", "succeeded"), "90m", "replace")),
        Defaults(names=frozenset(), left_out={"a": 1, "b": {"c": [None, "ü"]}}),
        Defaults(names=frozenset({"a", "b"})),
    ],
)
def test_defaults_survive_encoding(own: Defaults) -> None:
    read = from_bytes(to_bytes(own))
    assert (read.queue, read.priority, read.delivery, read.version) == (
        own.queue,
        own.priority,
        own.delivery,
        own.version,
    )
    assert (read.limit, read.names, read.left_out) == (own.limit, own.names, own.left_out)
    assert (read.unique is None) == (own.unique is None)
    if read.unique is not None and own.unique is not None:
        assert (read.unique.by, read.unique.rule) == (own.unique.by, own.unique.rule)


async def version_of(store: MemoryStore) -> int:
    record = await store.get_record(TASK, ALL_TENANTS, "work")
    return 0 if record is None else record.version


async def test_defaults_are_written_when_new_and_renewed_before_they_expire() -> None:
    store = MemoryStore()
    now, mine = await store.time(), TaskDefaultsPublisher({"work": Defaults("mine")})
    await mine.publish(store, now)
    first = await version_of(store)
    await mine.publish(store, now + DAY)
    assert await version_of(store) == first > 0
    await mine.publish(store, now + DEFAULTS_TTL // 2 + DAY)
    assert await version_of(store) > first
    assert (await published(store, "play")).defaults is NO_DEFAULTS


async def test_defaults_of_the_process_started_last_win() -> None:
    store = MemoryStore()
    now, old, new = (
        await store.time(),
        TaskDefaultsPublisher({"work": Defaults("old")}),
        TaskDefaultsPublisher({"work": Defaults("new")}),
    )
    await old.publish(store, now)
    await new.publish(store, now)
    await old.publish(store, now + DAY)
    assert (await published(store, "work")).defaults.queue == "new"
