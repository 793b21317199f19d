"""Scripted faults: what goes wrong, on which route, for which author, and how often."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from aiohttp import web

from momentum.sandbox import answers

FOREVER = 3600.0  # seconds

REFUSALS: dict[str, Callable[[], answers.Refusal]] = {
    "throttle_member": answers.throttled,
    "throttle_app": lambda: answers.throttled(answers.APP_LIMIT),
    "unauthorized": lambda: answers.bad_token(65601),
    "forbidden": answers.forbidden,
    "conflict": answers.conflict,
    "version": lambda: answers.dead_version("202609"),
}
BEFORE = ("timeout_before", "reset_before", "error_before", "answer", "slow", *REFUSALS)
AFTER = ("timeout_after", "reset_after", "error_after")  # the request has had its effect


@dataclass(slots=True)
class Fault:
    kind: str
    route: str = "posts.create"  # a name or pattern, such as "images.*"
    author: str | None = None  # URN; None: everyone
    times: int = 1
    skip: int = 0  # so many matching requests pass first
    every: int = 1  # then each nth request has the fault
    seconds: float = FOREVER
    status: int = 500
    body: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        if self.kind not in (*BEFORE, *AFTER):
            raise ValueError(f"kind: {self.kind!r} is not a fault; use one of {', '.join((*BEFORE, *AFTER))}")

    def strikes(self) -> bool:
        """Whether this matching request has the fault."""
        self.seen += 1
        number = self.seen - self.skip
        if number < 1 or number % self.every or self.done >= self.times:
            return False
        self.done += 1
        return True

    async def before(self, request: web.Request) -> web.Response | None:
        """A response instead of the real one, or None to go on."""
        match self.kind:
            case "slow" | "timeout_before":
                await asyncio.sleep(self.seconds)
                return None if self.kind == "slow" else web.Response(status=504)
            case "reset_before":
                return _reset(request)
            case "error_before":
                return web.Response(status=self.status, text="Internal Server Error")
            case "answer":
                return web.json_response(self.body, status=self.status)
            case kind if kind in REFUSALS:
                return REFUSALS[kind]().response()
        return None

    async def after(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        match self.kind:
            case "timeout_after":
                await asyncio.sleep(self.seconds)
            case "reset_after":
                return _reset(request)
            case "error_after":
                return web.Response(status=self.status, text="Internal Server Error")
        return response


class Faults:
    def __init__(self) -> None:
        self.scripted: list[Fault] = []

    async def take(self, route: str, author: Callable[[], Awaitable[str]]) -> Fault | None:
        """The fault that this request has, if any. `author` is asked only if a fault depends on it."""
        for fault in self.scripted:
            if fault.done >= fault.times or not fnmatch(route, fault.route):
                continue
            if fault.author is not None and fault.author != await author():
                continue
            if fault.strikes():
                return fault
        return None


def _reset(request: web.Request) -> web.Response:
    """The connection breaks without an answer."""
    transport = request.transport
    if transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST, not FIN
        transport.abort()
    return web.Response(status=500)
