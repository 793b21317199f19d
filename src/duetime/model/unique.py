"""Unique jobs: which earlier job counts as the same, and what happens to the new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.job import State

LIVE = frozenset({State.PENDING, State.QUEUED, State.RUNNING})


class OnConflict(StrEnum):
    SKIP = "skip"  # the new job is not stored
    REPLACE = "replace"  # the waiting job is cancelled, and the new one takes its place
    RESCHEDULE = "reschedule"  # the waiting job gets the due time of the new one


ConflictName = OnConflict | Literal["skip", "replace", "reschedule"]


class Rule(NamedTuple):
    """What a store needs to decide about a draft with a unique key."""

    states: frozenset[State]
    within: Micros | None  # only jobs stored within this time count; None: of any age
    on_conflict: OnConflict


class Admission(NamedTuple):
    """The result for a draft: stored (no conflict), or another job in its place."""

    id: UUID  # of the stored job, or of the job in its place
    conflict: str | None = None  # None, "skipped", "replaced" or "rescheduled"


@dataclass(frozen=True, slots=True)
class Unique:
    """Jobs of a task with the same arguments `by` (None: all arguments) are the same job, as long as one of
    them is in `states` and was stored within the time `within`. A running job can be neither replaced nor
    rescheduled: the new job is then skipped."""

    by: Sequence[str] | None = None
    states: Iterable[str] = ("pending", "running")
    within: Duration | None = None
    on_conflict: ConflictName = OnConflict.SKIP
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
        raise InvalidInput(
            "unique.states", '"pending" must be included: two waiting jobs with the same key are not unique'
        )
    return states | {State.QUEUED}


def _on_conflict(value: str) -> OnConflict:
    try:
        return OnConflict(value)
    except ValueError:
        raise InvalidInput("unique.on_conflict", f"{value!r} is not one of {', '.join(OnConflict)}") from None
