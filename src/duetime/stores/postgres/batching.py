"""Concurrent calls of one verb, served by the same statements: they wait for the server and for the disk
once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from duetime.errors import DuetimeError, StoreError
from duetime.stores.postgres.connection import PostgresConnection, Work

MAX_BATCH = 128  # so that other calls on the connection do not wait for long

Subject = tuple[str, Any]  # a tenant, and an id or a name


class BatchRequest(NamedTuple):
    subject: Subject
    values: tuple[Any, ...]
    reply: asyncio.Future[Any]


Batch = Sequence[BatchRequest]
Replies = Mapping[Subject, Any]


class Batcher:
    """For a repeatable verb about one job or schedule. `work_of` turns a batch of distinct subjects into one
    unit of work; a subject without a reply gets None, and an exception as a reply is raised. A single call
    waits for no other."""

    def __init__(
        self,
        connection: PostgresConnection,
        work_of: Callable[[Batch], Work[Replies]],
        *,
        atomic: bool = False,
    ) -> None:
        self._connection = connection
        self._work_of = work_of
        self._atomic = atomic
        self._waiting: list[BatchRequest] = []
        self._task: asyncio.Task[None] | None = None

    async def submit(self, subject: Subject, *values: Any) -> Any:
        request = BatchRequest(subject, values, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve(), name="duetime-batcher")
        return await request.reply

    async def _serve(self) -> None:
        while self._waiting:
            batch = self._next_batch()
            try:
                await self._try(batch)
            except BaseException as problem:
                _fail(batch, problem)
                if not isinstance(problem, Exception):
                    _fail(self._waiting, problem)
                    raise

    def _next_batch(self) -> list[BatchRequest]:
        chosen: dict[Subject, BatchRequest] = {}
        rest: list[BatchRequest] = []
        for request in self._waiting:
            if len(chosen) < MAX_BATCH and request.subject not in chosen:
                chosen[request.subject] = request
            else:
                rest.append(request)
        self._waiting = rest
        # In one order, so that two batches do not block each other.
        return sorted(chosen.values(), key=lambda request: request.subject)

    async def _try(self, batch: Batch) -> None:
        try:
            replies = await self._connection.run(self._work_of(batch), atomic=self._atomic)
        except Exception as problem:
            if len(batch) == 1 or not _concerns_one(problem):
                raise
            for request in batch:  # one of them is the cause, and only that one gets the error
                await self._try_alone(request)
            return
        for request in batch:
            _reply(request, replies.get(request.subject))

    async def _try_alone(self, request: BatchRequest) -> None:
        try:
            await self._try([request])
        except Exception as problem:
            _fail([request], problem)


def columns(batch: Batch) -> list[Sequence[Any]]:
    """Tenants, ids or names, and the values, each as an array of the server."""
    return [*zip(*((*request.subject, *request.values) for request in batch), strict=True)]


def by_statement(statement: str, key: str, single: str | None = None) -> Callable[[Batch], Work[Replies]]:
    """Work that is one statement about all subjects; `key` is the column that, with the tenant, identifies a
    row. `single` is the statement for one subject: where the server plans each time, it costs a tenth."""

    def work_of(batch: Batch) -> Work[Replies]:
        text, arguments = (
            (single, batch[0].subject)
            if single is not None and len(batch) == 1
            else (statement, columns(batch))
        )

        async def work(connection: Any, _is_retry: bool) -> Replies:
            return {(row["tenant"], row[key]): row for row in await connection.fetch(text, *arguments)}

        return work

    return work_of


def _concerns_one(problem: Exception) -> bool:
    """The server refused a statement as such; every other problem with the store concerns all callers."""
    return type(problem) is StoreError or not isinstance(problem, DuetimeError)


def _reply(request: BatchRequest, reply: Any) -> None:
    if request.reply.done():
        return
    if isinstance(reply, Exception):
        request.reply.set_exception(reply)
    else:
        request.reply.set_result(reply)


def _fail(batch: Batch, problem: BaseException) -> None:
    for request in batch:
        _reply(
            request,
            problem if isinstance(problem, Exception) else StoreError("the store was closed during the call"),
        )
