"""A thread that owns one connection. Coroutines of any event loop submit work; requests that wait are served
together."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Protocol, TypeVar

from duetime.errors import NotOpen, StoreError

Given = TypeVar("Given")
Answer = TypeVar("Answer")


class ThreadRequest(Generic[Given]):
    """A piece of work, and the caller that waits for its result. Without work: a request to end the
    thread."""

    __slots__ = ("answer", "error", "future", "loop", "work")

    def __init__(self, work: Callable[[Given], Any] | None) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.answer: Any = None
        self.error: Exception | None = None

    def perform(self, given: Given) -> None:
        assert self.work is not None
        self.answer = self.work(given)


class ConnectionOwner(Protocol[Given]):
    """What the thread runs. All its methods are called on the thread."""

    def serve(self, requests: list[ThreadRequest[Given]]) -> None:
        """Give every request its answer or error."""

    def close(self) -> None: ...


class ConnectionThread(Generic[Given]):
    """A daemon thread, so that a store that was never closed does not keep the interpreter from ending;
    close() waits for it."""

    def __init__(self, name: str, owner: ConnectionOwner[Given]) -> None:
        self._owner = owner
        self._waiting: SimpleQueue[ThreadRequest[Given]] = SimpleQueue()
        self._process = os.getpid()
        self._closed = False
        self._lock = Lock()  # no request is queued after the one that ends the thread
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[Given], Answer]) -> Answer:
        if os.getpid() != self._process:
            raise StoreError(
                "this SQLite store was opened before a fork, which its connection cannot cross: open "
                "another store in this process"
            )
        request: ThreadRequest[Given] = ThreadRequest(work)
        self._put(request)
        answer: Answer = await request.future
        return answer

    async def close(self) -> None:
        """Serve the requests that wait, close the connection, end the thread."""
        if os.getpid() == self._process:
            request: ThreadRequest[Given] = ThreadRequest(None)
            self._put(request)
            await (
                request.future
            )  # while the interpreter ends, no other thread can be started to wait for this one
            self._thread.join()

    def _put(self, request: ThreadRequest[Given]) -> None:
        with self._lock:
            if self._closed:
                raise NotOpen("the SQLite store was closed: open it again before using it")
            self._closed = request.work is None
            self._waiting.put(request)

    def _run(self) -> None:
        closing: list[ThreadRequest[Given]] = []
        try:
            while not closing:
                requests = [self._next()]
                requests += [self._waiting.get() for _ in range(self._waiting.qsize())]
                closing = [request for request in requests if request.work is None]
                self._serve([request for request in requests if request.work is not None])
            self._owner.close()
        finally:
            deliver(closing)

    def _next(self) -> ThreadRequest[Given]:
        return self._waiting.get()

    def _serve(self, requests: list[ThreadRequest[Given]]) -> None:
        try:
            self._owner.serve(requests)
        except Exception as problem:
            # A bug in the store must not leave callers waiting; every verb may be repeated.
            for request in requests:
                request.error = request.error or problem
        deliver(requests)


def deliver(requests: list[ThreadRequest[Given]]) -> None:
    """One wake-up per event loop, however many of its callers are answered."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[ThreadRequest[Given]]] = defaultdict(list)
    for request in requests:
        by_loop[request.loop].append(request)
    for loop, answered in by_loop.items():
        call_on(loop, _resolve, answered)


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        if not loop.is_closed():
            raise  # the callers of a closed loop are gone; anything else is a bug


def _resolve(requests: list[ThreadRequest[Given]]) -> None:
    for request in requests:
        if request.future.done():
            continue
        if request.error is not None:
            request.future.set_exception(request.error)
        else:
            request.future.set_result(request.answer)
