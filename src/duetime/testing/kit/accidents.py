"""Accidents a test arranges for its own tasks: a node that dies in the middle, a call that fails, a reply that gets lost.

Each happens once, at the place and at the count it was arranged for; what comes after runs undisturbed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from duetime.errors import InvalidInput

Place = Literal["call", "checkpoint", "once"]
LOSABLE = ("add_jobs", "add_unique", "claim", "mark", "save", "settle")


@dataclass(slots=True)
class Accident:
    task: str
    place: Place
    left: int  # how often the place is passed unharmed, and once more
    before: bool
    error: BaseException | None = None  # raised there; None: the node dies

    def due(self, task: str, place: Place) -> bool:
        if self.left <= 0 or task != self.task or place != self.place:
            return False
        self.left -= 1
        return self.left == 0


@dataclass(slots=True)
class Point:
    """A place that was reached, with the accidents that happen there now."""

    accidents: list[Accident]
    die: Callable[[], Awaitable[None]]

    async def before(self) -> None:
        await self._happen(before=True)

    async def after(self) -> None:
        await self._happen(before=False)

    async def _happen(self, before: bool) -> None:
        for accident in self.accidents:
            if accident.before is before:
                if accident.error is not None:
                    raise accident.error
                await self.die()


@dataclass(slots=True)
class Accidents:
    die: Callable[[], Awaitable[None]]
    planned: list[Accident] = field(default_factory=list)
    lost_replies: dict[str, int] = field(default_factory=dict)

    def add(self, accident: Accident) -> None:
        if isinstance(accident.left, bool) or accident.left < 1:
            raise InvalidInput(accident.place, f"{accident.left!r} must be a whole number of at least 1: the first is 1")
        self.planned.append(accident)

    def reach(self, place: Place, task: str) -> Point:
        return Point([accident for accident in self.planned if accident.due(task, place)], self.die)

    def lose_reply(self, verb: str, call: int) -> None:
        if verb not in LOSABLE:
            raise InvalidInput("verb", f"{verb!r} is not one of {', '.join(LOSABLE)}")
        self.lost_replies[verb] = call

    def loses_reply(self, verb: str) -> bool:
        left = self.lost_replies.get(verb, 0)
        if left:
            self.lost_replies[verb] = left - 1
        return left == 1

    @property
    def pending(self) -> list[str]:
        """Arranged, and never come to."""
        return [f"{accident.place} of {accident.task}" for accident in self.planned if accident.left > 0]
