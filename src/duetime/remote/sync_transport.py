"""The blocking transport: connections of the standard library, kept open between requests and shared by
threads."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead

from duetime.clock import monotonic_micros
from duetime.errors import NotOpen
from duetime.model.instant import Micros
from duetime.remote.endpoint import CHUNK, MAX_IDLE, MAX_REPLY, Endpoint, check_size
from duetime.remote.request import Reply, ServiceRequest

BROKEN = (OSError, HTTPException)


class SyncTransport:
    """Sends requests, each on a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: deque[tuple[HTTPConnection, Micros]] = deque()  # with the time since when
        self._holding: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()

    def send(self, request: ServiceRequest) -> Reply:
        connection = self._take()
        with self._closing_on_error(connection), self._held(connection, request):
            response = self._begin(connection, request)
            body = _body(response)
        self._keep(connection, response)
        return Reply(response.status, _headers(response), body)

    def open(self, request: ServiceRequest, silence_timeout: float) -> SyncStream:
        """A reply without an end. `silence_timeout`: seconds without a byte after which it fails."""
        connection = self._take()
        channel = connection.sock  # the connection drops it when the response ends with the connection
        with self._closing_on_error(connection):
            response = self._begin(connection, request)
            channel.settimeout(silence_timeout)
        return SyncStream(self._endpoint, connection, response)

    def pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise NotOpen("the client was closed during this call")

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            while self._idle:
                self._idle.popleft()[0].close()
            for channel in self._holding:
                with suppress(OSError):
                    channel.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it

    @contextmanager
    def _closing_on_error(self, connection: HTTPConnection) -> Iterator[None]:
        try:
            yield
        except BaseException as problem:
            connection.close()
            if isinstance(problem, BROKEN):
                raise self._endpoint.unreachable(problem, True) from problem
            raise

    @contextmanager
    def _held(self, connection: HTTPConnection, request: ServiceRequest) -> Iterator[None]:
        if not request.held:
            yield
            return
        channel = connection.sock
        channel.settimeout(self._endpoint.timeout + request.held)
        with self._lock:
            self._holding.add(channel)
        try:
            yield
        finally:
            with self._lock:
                self._holding.discard(channel)
            with suppress(OSError):
                channel.settimeout(self._endpoint.timeout)

    def _begin(self, connection: HTTPConnection, request: ServiceRequest) -> HTTPResponse:
        path = f"{self._endpoint.address.prefix}{request.path}"
        connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._endpoint.headers(request).items():
            connection.putheader(name, value)
        connection.endheaders(request.body)
        return connection.getresponse()

    def _take(self) -> HTTPConnection:
        if self._closed.is_set():
            raise NotOpen("the client is closed: make a new one")
        with self._lock:
            if self._process != os.getpid():
                # After a fork, parent and child share the sockets: each process needs connections of its own.
                self._idle, self._holding, self._process = deque(), set(), os.getpid()
            while self._idle:
                connection, since = self._idle.pop()
                if monotonic_micros() - since < MAX_IDLE and not _readable(connection):
                    return connection
                connection.close()
        return self._connect()

    def _connect(self) -> HTTPConnection:
        address, timeout, tls = self._endpoint.address, self._endpoint.timeout, self._endpoint.tls
        if tls is None:
            connection = HTTPConnection(address.host, address.port, timeout=timeout)
        else:
            connection = HTTPSConnection(address.host, address.port, timeout=timeout, context=tls)
        try:
            connection.connect()
        except OSError as problem:
            connection.close()
            raise self._endpoint.unreachable(problem, False) from problem
        return connection

    def _keep(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        with self._lock:
            if response.will_close or self._closed.is_set():
                connection.close()
            else:
                self._idle.append((connection, monotonic_micros()))


class SyncStream:
    def __init__(self, endpoint: Endpoint, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._endpoint, self._connection, self._response = endpoint, connection, response
        self.status, self.headers = response.status, _headers(response)

    def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        try:
            return self._response.read1(CHUNK)
        except BROKEN as problem:
            raise self._endpoint.unreachable(problem, True) from problem

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def _body(response: HTTPResponse) -> bytes:
    expected = response.length
    body = response.read(MAX_REPLY + 1)
    check_size(len(body))
    if expected is not None and len(body) < expected:
        raise IncompleteRead(body, expected - len(body))
    return body


def _headers(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _readable(connection: HTTPConnection) -> bool:
    """An idle connection is readable only if the other end has closed it."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
