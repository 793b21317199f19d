"""One connection on one thread. Coroutines of any event loop hand in work; what waits when the thread is free is served together."""

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


class Request(Generic[Given]):
    """A piece of work, and the caller who waits for its outcome."""

    __slots__ = ("answer", "error", "future", "loop", "work")

    def __init__(self, work: Callable[[Given], Any]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.answer: Any = None
        self.error: Exception | None = None


class Server(Protocol[Given]):
    """What the thread runs. All of it is called on the thread."""

    def serve(self, requests: list[Request[Given]]) -> None:
        """Give every request its outcome."""

    def close(self) -> None: ...


class ServingThread(Generic[Given]):
    """Daemonic, so that a store nobody closed cannot keep the interpreter from ending; close() waits for it."""

    def __init__(self, name: str, server: Server[Given]) -> None:
        self._server = server
        self._waiting: SimpleQueue[Request[Given] | None] = SimpleQueue()
        self._owner = os.getpid()
        self._closed = False
        self._ended = False  # the connection is closed, and the thread about to go
        self._closers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._gate = Lock()  # nothing is handed in behind the sign to stop
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[Given], Answer]) -> Answer:
        if os.getpid() != self._owner:
            raise StoreError("this SQLite store was opened before a fork, and its connection cannot cross it: open another in this process")
        request: Request[Given] = Request(work)
        with self._gate:
            if self._closed:
                raise NotOpen("the SQLite store was closed: open it again before using it")
            self._waiting.put(request)
        answer: Answer = await request.future
        return answer

    async def close(self) -> None:
        """Serve what waits, close the connection, end the thread."""
        if os.getpid() != self._owner:
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        with self._gate:
            if not self._closed:
                self._closed = True
                self._waiting.put(None)
            if self._ended:
                ended.set_result(None)
            else:
                self._closers.append((loop, ended))
        await ended  # told by the thread itself: when the interpreter ends there are no others to be had that could wait for it
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve_until_closed()
        finally:
            with self._gate:
                self._ended = True
            for loop, ended in self._closers:
                call_on(loop, _tell_ended, ended)

    def _serve_until_closed(self) -> None:
        open_for_more = True
        while open_for_more:
            taken = [self._next()]
            taken += [self._waiting.get() for _ in range(self._waiting.qsize())]
            requests = [request for request in taken if request is not None]
            open_for_more = len(requests) == len(taken)
            if requests:
                self._serve(requests)
        self._server.close()

    def _next(self) -> Request[Given] | None:
        return self._waiting.get()

    def _serve(self, requests: list[Request[Given]]) -> None:
        try:
            self._server.serve(requests)
        except Exception as problem:
            # A fault of ours must not leave them waiting for ever; every verb may be repeated.
            for request in requests:
                request.error = request.error or problem
        deliver(requests)


def deliver(requests: list[Request[Given]]) -> None:
    """One wake-up per event loop, however many of its callers are answered."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Request[Given]]] = defaultdict(list)
    for request in requests:
        by_loop[request.loop].append(request)
    for loop, answered in by_loop.items():
        call_on(loop, _resolve, answered)


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        if not loop.is_closed():
            raise  # a loop that ended took everybody who waited with it; any other trouble is ours


def _tell_ended(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _resolve(requests: list[Request[Given]]) -> None:
    for request in requests:
        if request.future.done():
            continue
        if request.error is not None:
            request.future.set_exception(request.error)
        else:
            request.future.set_result(request.answer)
