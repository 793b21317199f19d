"""The terms of a task: what its registration says for jobs that do not say otherwise. Nodes that run the task put them into the store, for
those who submit jobs by its name and know no more of it than that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime.engine import notices
from duetime.engine.drafts import NO_DEFAULTS, Defaults
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Limit
from duetime.model.unique import Unique
from duetime.store import Store

KEPT_FOR = 30 * 86_400 * SECOND  # so long after the last worker, a job may be submitted that is to run when there is one again


class Publisher:
    """The voice of one process. Where processes do not agree, the one that started last is right: each speaks up once against what it
    finds, and not again when it lost its place in the fleet for a while. From then on it writes what is missing or soon forgotten."""

    def __init__(self, terms: Mapping[str, Defaults]) -> None:
        self._terms = {task: to_bytes(defaults) for task, defaults in terms.items()}
        self._spoke_up = False

    async def publish(self, store: Store, now: Micros) -> None:
        if not self._terms:
            return
        known = await notices.read_all(store, notices.TASK)
        for task, said in self._terms.items():
            there = known.get(task)
            if there is None or (not self._spoke_up if there.value != said else (there.expires_at or 0) < now + KEPT_FOR // 2):
                await notices.post(store, notices.TASK, task, said, now + KEPT_FOR)
        self._spoke_up = True


async def published(store: Store, task: str) -> Defaults:
    """As nodes that run the task have said. Without a word from them, or with one that only a later version understands, there are none."""
    there = await notices.read(store, notices.TASK, task)
    return NO_DEFAULTS if there is None else _understood(there.value)


async def all_published(store: Store) -> dict[str, Defaults]:
    """By task, of those that nodes have said something about."""
    return {task: _understood(record.value) for task, record in (await notices.read_all(store, notices.TASK)).items()}


def _understood(data: bytes) -> Defaults:
    try:
        return from_bytes(data)
    except (InvalidInput, LookupError, TypeError, ValueError):
        return NO_DEFAULTS


def to_bytes(defaults: Defaults) -> bytes:
    limit, unique, names = defaults.limit, defaults.unique, defaults.names
    return encode(
        {
            "queue": defaults.queue,
            "priority": defaults.priority,
            "delivery": defaults.delivery,
            "version": defaults.version,
            "limit": None if limit is None else {"most": limit.most, "per": limit.per, "rate": limit.rate},
            "unique": None if unique is None else _uniqueness(unique),
            "names": None if names is None else sorted(names),
            "left_out": defaults.left_out,
        }
    )


def from_bytes(data: bytes) -> Defaults:
    value = decode(data)
    limit, unique, names = value["limit"], value["unique"], value["names"]
    return Defaults(
        queue=value["queue"],
        priority=value["priority"],
        delivery=value["delivery"],
        version=value["version"],
        limit=None if limit is None else Limit(**limit),
        unique=None if unique is None else Unique(**unique),
        names=None if names is None else frozenset(names),
        left_out=value["left_out"],
    )


def _uniqueness(unique: Unique) -> dict[str, Any]:
    states, within, on_conflict = unique.rule
    shown = None if within is None else duration.show(within)
    return {"by": unique.by, "states": sorted(states), "within": shown, "on_conflict": on_conflict}
