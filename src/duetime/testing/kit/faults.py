"""Faults that a test plans for its own tasks: a node that dies in the middle, a call that fails, a reply that
gets lost.

Each fault happens once, at its place and count; everything after it runs undisturbed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from duetime.errors import InvalidInput

Place = Literal["call", "checkpoint", "once"]
LOSABLE = ("add_jobs", "add_unique", "claim", "save_progress", "settle", "take_once")


@dataclass(slots=True)
class TaskFault:
    task: str
    place: Place
    left: int  # it happens when the place is reached for this many more times
    before: bool
    error: BaseException | None = None  # raised there; None: the node dies

    def reached(self, task: str, place: Place) -> bool:
        if self.left <= 0 or task != self.task or place != self.place:
            return False
        self.left -= 1
        return self.left == 0


@dataclass(slots=True)
class FaultPoint:
    """A place that was reached, with the faults that happen there now."""

    faults: list[TaskFault]
    die: Callable[[], Awaitable[None]]

    async def before(self) -> None:
        await self._inject(before=True)

    async def after(self) -> None:
        await self._inject(before=False)

    async def _inject(self, before: bool) -> None:
        for fault in self.faults:
            if fault.before is before:
                if fault.error is not None:
                    raise fault.error
                await self.die()


@dataclass(slots=True)
class FaultPlan:
    die: Callable[[], Awaitable[None]]
    planned: list[TaskFault] = field(default_factory=list)
    lost_replies: dict[str, int] = field(default_factory=dict)

    def add(self, fault: TaskFault) -> None:
        if isinstance(fault.left, bool) or fault.left < 1:
            raise InvalidInput(
                fault.place, f"{fault.left!r} is not a whole number of at least 1; the first time is 1"
            )
        self.planned.append(fault)

    def reach(self, place: Place, task: str) -> FaultPoint:
        return FaultPoint([fault for fault in self.planned if fault.reached(task, place)], self.die)

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
        """Planned and not happened."""
        return [f"{fault.place} of {fault.task}" for fault in self.planned if fault.left > 0]
