"""Attempts without an engine: handlers, and contexts whose desk keeps what is written down in a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from duetime.errors import Fenced
from duetime.invoker import Context, Policies
from duetime.invokers.task import Signature, TaskHandler
from duetime.invokers.threads import Threads
from duetime.model.codec import encode
from duetime.model.job import Claimed, Delivery
from duetime.model.retry import Retry
from duetime.store import AttemptUpdate, TaskTransaction

POLICIES = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)


class ListOutput:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str]] = []
        self.left_out = 0

    def add(self, stream: str, level: int, text: str, logged: bool, age: int = 0) -> None:
        self.lines.append((str(stream), level, text))

    def leave_out(self, lines: int) -> None:
        self.left_out += lines


class ListDesk:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.notes: list[AttemptUpdate] = []
        self.marks: set[str] = set()
        self.fenced = False
        self.output = ListOutput()

    async def save(self, note: AttemptUpdate) -> None:
        if self.fenced:
            raise Fenced("the job belongs to another attempt")
        self.notes.append(note)

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        new = key not in self.marks
        self.marks.add(key)
        return new

    async def transact(self) -> TaskTransaction:
        raise NotImplementedError

    def open_output(self, job: Claimed) -> ListOutput:
        return self.output


def context(
    desk: ListDesk | None = None,
    policies: dict[str, Any] | None = None,
    checkpoint: Any = None,
    payload: bytes = b"{}",
) -> Context:
    job = Claimed(
        UUID(int=7), 1, "work", b"{}", 0, "default", 5, 0, 0, 0, False, None, None, None,
        None if policies is None else encode(policies), None, None if checkpoint is None else encode(checkpoint), "default",
    )  # fmt: skip
    return Context(job, desk or ListDesk())


def handler(function: Callable[..., Any], **options: Any) -> TaskHandler:
    threads = options.pop("threads", None) or Threads(stop_timeout=0.05, interrupt_timeout=60.0)
    return TaskHandler(function, Signature("work", function), POLICIES, lambda: threads, **options)


async def invoke(
    function: Callable[..., Any], /, arguments: dict[str, Any] | None = None, **options: Any
) -> Any:
    return await handler(function, **options).invoke(context(), encode(arguments or {}))
