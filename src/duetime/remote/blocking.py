"""The transport that blocks: connections of the standard library, kept open between requests and shared by threads."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import NamedTuple

from duetime.clock import monotonic_micros
from duetime.errors import NotOpen
from duetime.model.instant import Micros
from duetime.remote.message import IDLE, LARGEST_REPLY, Line, too_large
from duetime.remote.talk import Reply, Request

CHUNK = 64 * 1024


class _Kept(NamedTuple):
    connection: HTTPConnection
    since: Micros


class Wire:
    """Sends requests, each on a connection nobody else uses at the time."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._kept: deque[_Kept] = deque()
        self._held: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()

    def send(self, request: Request) -> Reply:
        connection = self._take()
        try:
            with self._holding(connection, request):
                response = self._begin(connection, request)
                body = _body(response)
        except (OSError, HTTPException) as problem:
            connection.close()
            raise self._line.unreachable(problem, True) from problem
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        return Reply(response.status, _headers(response), body)

    def open(self, request: Request, patience: float) -> Stream:
        """An answer that has no end. `patience`: seconds without a byte after which it is given up."""
        connection = self._take()
        channel = connection.sock  # the connection lets go of it when the answer ends with it
        try:
            response = self._begin(connection, request)
            channel.settimeout(patience)
        except (OSError, HTTPException) as problem:
            connection.close()
            raise self._line.unreachable(problem, True) from problem
        return Stream(self._line, connection, response)

    def pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise NotOpen("the client was closed while this call was under way")

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            while self._kept:
                self._kept.popleft().connection.close()
            for channel in self._held:
                with suppress(OSError):
                    channel.shutdown(socket.SHUT_RDWR)  # whoever reads there, in another thread, is woken by that

    @contextmanager
    def _holding(self, connection: HTTPConnection, request: Request) -> Iterator[None]:
        if not request.held:
            yield
            return
        channel = connection.sock
        channel.settimeout(self._line.timeout + request.held)
        with self._lock:
            self._held.add(channel)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(channel)
            with suppress(OSError):
                channel.settimeout(self._line.timeout)

    def _begin(self, connection: HTTPConnection, request: Request) -> HTTPResponse:
        path = f"{self._line.address.prefix}{request.path}"
        connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._line.headers(request).items():
            connection.putheader(name, value)
        connection.endheaders(request.body)
        return connection.getresponse()

    def _take(self) -> HTTPConnection:
        if self._closed.is_set():
            raise NotOpen("the client is closed: make a new one")
        with self._lock:
            if self._process != os.getpid():
                # A server that forks shares the connections with its parent: each process needs its own.
                self._kept, self._held, self._process = deque(), set(), os.getpid()
            while self._kept:
                kept = self._kept.pop()
                if monotonic_micros() - kept.since < IDLE and not _readable(kept.connection):
                    return kept.connection
                kept.connection.close()
        return self._connect()

    def _connect(self) -> HTTPConnection:
        line, address = self._line, self._line.address
        if line.tls is None:
            connection = HTTPConnection(address.host, address.port, timeout=line.timeout)
        else:
            connection = HTTPSConnection(address.host, address.port, timeout=line.timeout, context=line.tls)
        try:
            connection.connect()
        except OSError as problem:
            connection.close()
            raise self._line.unreachable(problem, False) from problem
        return connection

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            if self._closed.is_set():
                connection.close()
            else:
                self._kept.append(_Kept(connection, monotonic_micros()))


class Stream:
    def __init__(self, line: Line, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._line, self._connection, self._response = line, connection, response
        self.status, self.headers = response.status, _headers(response)

    def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        try:
            return self._response.read1(CHUNK)
        except (OSError, HTTPException) as problem:
            raise self._line.unreachable(problem, True) from problem

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def _body(response: HTTPResponse) -> bytes:
    expected = response.length
    body = response.read(LARGEST_REPLY + 1)
    too_large(len(body))
    if expected is not None and len(body) < expected:
        raise IncompleteRead(body, expected - len(body))
    return body


def _headers(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _readable(connection: HTTPConnection) -> bool:
    """Nothing is to be read of a connection that rests, unless its other end has closed it."""
    if connection.sock is None:
        return True
    watch = select.poll()
    watch.register(connection.sock, select.POLLIN)
    return bool(watch.poll(0))
