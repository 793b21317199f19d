"""Unique jobs: which earlier job counts as the same, and what becomes of the newcomer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.job import State

LIVE = frozenset({State.PENDING, State.QUEUED, State.RUNNING})


class OnConflict(StrEnum):
    SKIP = "skip"  # the job that is there answers for the newcomer
    REPLACE = "replace"  # the one that waits is cancelled, and the newcomer takes its place
    RESCHEDULE = "reschedule"  # the one that waits takes over the newcomer's due time


class Rule(NamedTuple):
    """What a store needs to know in order to decide about a draft with a unique key."""

    states: frozenset[State]
    within: Micros | None  # only jobs stored within this time count; None: however old
    on_conflict: OnConflict


class Admission(NamedTuple):
    """What became of a draft: stored (no conflict), or answered by another job."""

    id: UUID  # of the job that answers for the draft
    conflict: str | None = None  # None, "skipped", "replaced" or "rescheduled"


@dataclass(frozen=True, slots=True)
class Unique:
    """Jobs of a task with the same arguments `by` (all of them when None) are the same job while one in `states` is there, stored not
    longer ago than `within`. A job that runs already can neither be replaced nor rescheduled: then the newcomer is skipped."""

    by: Sequence[str] | None = None
    states: Iterable[str] = ("pending", "running")
    within: Duration | None = None
    on_conflict: str = OnConflict.SKIP
    rule: Rule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.by, str) or isinstance(self.states, str):
            raise InvalidInput("unique", 'by and states are lists of names: write by=["customer"]')
        if self.by is not None:
            object.__setattr__(self, "by", tuple(self.by))
        within = None if self.within is None else duration.positive(self.within, "unique.within")
        object.__setattr__(self, "rule", Rule(_states(self.states), within, _on_conflict(self.on_conflict)))


def _states(names: Iterable[str]) -> frozenset[State]:
    try:
        states = frozenset(State(name) for name in names)
    except ValueError as problem:
        raise InvalidInput("unique.states", f"{problem}: use some of {', '.join(State)}") from None
    if State.PENDING not in states:
        raise InvalidInput("unique.states", '"pending" must be among them: two that wait with one key are what a key forbids')
    return states | {State.QUEUED}


def _on_conflict(value: str) -> OnConflict:
    try:
        return OnConflict(value)
    except ValueError:
        raise InvalidInput("unique.on_conflict", f"{value!r} is not one of {', '.join(OnConflict)}") from None
