"""The child's end of the line to its worker: orders and replies come in on a thread, everything else goes out."""

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
from duetime.invokers.conversation import known_error
from duetime.invokers.wire import HEAD, Message, length_in, pack, unpack
from duetime.store import Note, Transaction


class Line(logging.Handler):
    """When it breaks, the worker is gone: then everything of this process group goes, too."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._sending = threading.Lock()
        self._numbers = count()
        self._calls: dict[int, Future[Any]] = {}
        self.orders: SimpleQueue[Message] = SimpleQueue()
        self.context: Context | None = None
        threading.Thread(target=self._listen, name="duetime-line", daemon=True).start()

    def send(self, message: Message) -> None:
        data = pack(message)
        with self._sending:
            self._connection.sendall(data)

    def ask(self, verb: str, value: Any) -> Future[Any]:
        number = next(self._numbers)
        answer: Future[Any] = Future()
        self._calls[number] = answer
        self.send({"kind": "call", "number": number, "verb": verb, "value": value})
        return answer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            self.send({"kind": "log", "logger": record.name, "level": record.levelno, "text": text})
        except Exception:
            self.handleError(record)

    def _listen(self) -> None:
        while (head := self._read(HEAD)) and (body := self._read(length_in(head))):
            self._heard(unpack(body))
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def _heard(self, message: Message) -> None:
        match message["kind"]:
            case "reply" if "error" in message:
                self._calls.pop(message["number"]).set_exception(known_error(message["error"], message["text"]))
            case "reply":
                self._calls.pop(message["number"]).set_result(message["value"])
            case "stop":
                if self.context is not None:
                    self.context.stop_requested = True
            case _:
                self.orders.put(message)

    def _read(self, length: int) -> bytes:
        """So many bytes; fewer when the other side is gone."""
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


class ChildDesk:
    """The desk of the worker, over the line."""

    def __init__(self, line: Line, loop: asyncio.AbstractEventLoop) -> None:
        self._line = line
        self.loop = loop

    async def save(self, note: Note) -> None:
        for verb, data in (("checkpoint", note.checkpoint), ("progress", note.progress)):
            if data is not None:
                await asyncio.wrap_future(self._line.ask(verb, data.decode()))

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        taken: bool = await asyncio.wrap_future(self._line.ask("once", key))
        return taken

    async def transact(self) -> Transaction:
        raise Conflict("ctx.connection belongs to the worker's process: a task that needs it cannot have isolate=True")
