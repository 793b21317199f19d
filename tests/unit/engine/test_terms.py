"""The terms of a task as others read them, and who writes them when."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.engine import terms
from duetime.engine.drafts import NO_DEFAULTS, Defaults
from duetime.engine.notices import EVERYBODY, TASK
from duetime.engine.terms import KEPT_FOR, Publisher, from_bytes, to_bytes
from duetime.model.instant import SECOND
from duetime.stores.memory import MemoryStore

DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    "said",
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
def test_read_back_they_say_the_same(said: Defaults) -> None:
    read = from_bytes(to_bytes(said))
    assert (read.queue, read.priority, read.delivery, read.version) == (said.queue, said.priority, said.delivery, said.version)
    assert (read.limit, read.names, read.left_out) == (said.limit, said.names, said.left_out)
    assert (read.unique is None) == (said.unique is None)
    if read.unique is not None and said.unique is not None:
        assert (read.unique.by, read.unique.rule) == (said.unique.by, said.unique.rule)


async def version_of(store: MemoryStore) -> int:
    record = await store.get_record(TASK, EVERYBODY, "work")
    return 0 if record is None else record.version


async def test_they_are_written_when_they_are_new_and_before_they_are_forgotten() -> None:
    store = MemoryStore()
    now, mine = await store.time(), Publisher({"work": Defaults("mine")})
    await mine.publish(store, now)
    first = await version_of(store)
    await mine.publish(store, now + DAY)
    assert await version_of(store) == first > 0
    await mine.publish(store, now + KEPT_FOR // 2 + DAY)
    assert await version_of(store) > first
    assert await terms.published(store, "play") is NO_DEFAULTS


async def test_whoever_started_last_is_right() -> None:
    store = MemoryStore()
    now, old, new = await store.time(), Publisher({"work": Defaults("old")}), Publisher({"work": Defaults("new")})
    await old.publish(store, now)
    await new.publish(store, now)
    await old.publish(store, now + DAY)
    assert (await terms.published(store, "work")).queue == "new"
