"""The terms of a task as others read them, and who writes them when."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.engine import terms
from duetime.engine.drafts import NO_DEFAULTS, Defaults
from duetime.engine.notices import EVERYBODY, TASK
from duetime.engine.terms import KEPT_FOR, from_bytes, publish, to_bytes
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
    now, mine, yours = await store.time(), {"work": to_bytes(Defaults("mine"))}, {"work": to_bytes(Defaults("yours"))}
    await publish(store, now, mine, first=True)
    first = await version_of(store)
    await publish(store, now + DAY, mine, first=False)
    await publish(store, now + DAY, yours, first=False)  # it started before us
    assert await version_of(store) == first > 0
    await publish(store, now + KEPT_FOR // 2 + DAY, mine, first=False)
    assert await version_of(store) > first
    await publish(store, now, yours, first=True)
    assert (await terms.published(store, "work")).queue == "yours"
    assert await terms.published(store, "play") is NO_DEFAULTS
