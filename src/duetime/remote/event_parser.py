"""The stream of events without input or output: bytes in, events out, and the position after an
interruption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from duetime.errors import (
    DuetimeError,
    InvalidInput,
    RateLimited,
    ServiceError,
    ServiceUnreachable,
    StoreUnavailable,
)
from duetime.model.codec import decode
from duetime.model.views import EventView
from duetime.remote.request import RetryPolicy, ServiceRequest, backoff, problem_of, request

SILENCE_TIMEOUT = 45.0  # seconds; the service sends a comment every 15
MAX_LINE = 1024 * 1024
TEMPORARY = (ServiceUnreachable, RateLimited, StoreUnavailable)


class EventParser:
    def __init__(self, types: Sequence[str] | None, after: int | None, policy: RetryPolicy) -> None:
        if isinstance(types, str):
            raise InvalidInput("types", f"{types!r} is text: use a list, such as [{types!r}]")
        self._types = types
        self._last = after
        self._policy = policy
        self._rest = b""
        self._fields: dict[str, str] = {}
        self._failures = 0

    def request(self) -> ServiceRequest:
        self._rest, self._fields = b"", {}
        headers = {
            "Accept": "text/event-stream",
            **({} if self._last is None else {"Last-Event-ID": str(self._last)}),
        }
        return request(
            "GET",
            "/events",
            query={"types": None if self._types is None else ",".join(self._types)},
            headers=headers,
        )

    def check(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        if status != 200:
            raise problem_of(status, headers, body)

    def feed(self, data: bytes) -> Iterator[EventView]:
        self._failures = 0
        *lines, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ServiceError("an event is too long: check that the address is that of a Duetime service")
        for line in lines:
            if line:
                self._field(line.decode("utf-8", "replace"))
            elif "data" in self._fields:
                yield self._event()
            else:
                self._fields = {}

    def interrupted(self, problem: DuetimeError | None) -> float:
        """Seconds before the next try; raises the problem if waiting cannot solve it."""
        self._failures += 1
        if problem is not None and (
            not isinstance(problem, TEMPORARY) or self._failures > self._policy.retries
        ):
            raise problem
        return backoff(self._failures - 1)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and "data" in self._fields:
            value = f"{self._fields['data']}\n{value}"
        if name:
            self._fields[name] = value

    def _event(self) -> EventView:
        fields, self._fields = self._fields, {}
        number = fields.get("id", "")
        if number.isascii() and number.isdigit():
            self._last = int(number)
        try:
            data = decode(fields["data"].encode())
        except ValueError:
            data = {"text": fields["data"]}
        return EventView(
            id=self._last,
            kind=fields.get("event", "message"),
            data=data if isinstance(data, dict) else {"value": data},
        )
