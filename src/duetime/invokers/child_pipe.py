"""The child's end of the pipe to its worker: a thread receives orders and replies; everything else is
sent."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from concurrent.futures import Future
from itertools import count
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from duetime.errors import Conflict
from duetime.invoker import Context
from duetime.invokers.protocol import HEADER_BYTES, Message, body_length, known_error, pack, unpack
from duetime.store import AttemptUpdate, TaskTransaction


class ChildPipe(logging.Handler):
    """When the pipe breaks, the worker is gone, and the whole process group of the child is killed."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._sending = threading.Lock()
        self._numbers = count()
        self._calls: dict[int, Future[Any]] = {}
        self.orders: SimpleQueue[Message] = SimpleQueue()
        self.context: Context | None = None
        threading.Thread(target=self._receive, name="duetime-pipe", daemon=True).start()

    def send(self, message: Message) -> None:
        data = pack(message)
        with self._sending:
            self._connection.sendall(data)

    async def call(self, verb: str, value: Any) -> Any:
        """Ask the worker for something, and wait for its reply."""
        number = next(self._numbers)
        reply = self._calls[number] = Future()
        self.send({"kind": "call", "number": number, "verb": verb, "value": value})
        return await asyncio.wrap_future(reply)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.send(
                {"kind": "log", "logger": record.name, "level": record.levelno, "text": self.format(record)}
            )
        except Exception:
            self.handleError(record)

    def _receive(self) -> None:
        while (header := self._read(HEADER_BYTES)) and (body := self._read(body_length(header))):
            self._handle_message(unpack(body))
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def _handle_message(self, message: Message) -> None:
        match message["kind"]:
            case "reply" if "error" in message:
                self._calls.pop(message["number"]).set_exception(
                    known_error(message["error"], message["text"])
                )
            case "reply":
                self._calls.pop(message["number"]).set_result(message["value"])
            case "stop":
                if self.context is not None:
                    self.context.stop_requested = True
            case _:
                self.orders.put(message)

    def _read(self, length: int) -> bytes:
        """This many bytes, or none if the worker is gone."""
        data = b""
        while len(data) < length:
            try:
                more = self._connection.recv(length - len(data))
            except OSError:
                return b""
            if not more:
                return b""
            data += more
        return data


class ChildAttemptWriter:
    """The worker's attempt writer, over the pipe."""

    def __init__(self, pipe: ChildPipe, loop: asyncio.AbstractEventLoop) -> None:
        self._pipe = pipe
        self.loop = loop

    async def save(self, note: AttemptUpdate) -> None:
        for verb, data in (("checkpoint", note.checkpoint), ("progress", note.progress)):
            if data is not None:
                await self._pipe.call(verb, data.decode())

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        return bool(await self._pipe.call("once", key))

    async def transact(self) -> TaskTransaction:
        raise Conflict(
            "ctx.connection belongs to the worker's process: a task that needs it cannot have isolate=True"
        )
