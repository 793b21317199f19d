"""What is forgotten when: the leader prunes, and tasks that say so have their jobs kept for a shorter
time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from duetime.engine.plan.planner import Retention
from duetime.model.instant import SECOND, Micros
from duetime.store import Store
from tests.unit.engine.fake_store import play, virtual_clock


class Pruned:
    def __init__(self) -> None:
        self.calls: list[tuple[Micros, Mapping[str, Micros] | None]] = []

    async def prune(self, before: Micros, targets: Mapping[str, Micros] | None = None) -> int:
        self.calls.append((before, targets))
        return 0


def test_each_target_has_its_own_instant() -> None:
    async def scene() -> None:
        store, now = Pruned(), virtual_clock().now()
        retention = Retention(
            cast(Store, store), virtual_clock(), lambda: True, 100 * SECOND, {"ping": 5 * SECOND}
        )
        await retention.run_once()
        assert store.calls == [(now - 100 * SECOND, {"ping": now - 5 * SECOND})]

    play(scene)


def test_without_any_the_store_is_asked_as_before() -> None:
    async def scene() -> None:
        store = Pruned()
        await Retention(cast(Store, store), virtual_clock(), lambda: True, SECOND, {}).run_once()
        assert [targets for _, targets in store.calls] == [None]

    play(scene)


def test_only_the_leader_prunes() -> None:
    async def scene() -> None:
        store = Pruned()
        await Retention(cast(Store, store), virtual_clock(), lambda: False, SECOND, {"ping": 1}).run_once()
        assert store.calls == []

    play(scene)
