"""A talk with the service, without input or output: a generator that yields what is to be done next and is told what came of it.

A call yields requests and is given their answers. `converse` stands between it and a transport: it repeats what may be repeated, waits as
long as the service asks for, and raises what the service refused.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from duetime.clock import noise
from duetime.errors import DuetimeError, InvalidInput, InvalidPayload, ServiceUnreachable
from duetime.model.codec import encode
from duetime.model.ids import random_bytes
from duetime.remote.problems import problem_of

Answer = TypeVar("Answer")
BUSY = frozenset({429, 502, 503, 504})
IN_PROGRESS = "idempotency_in_progress"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
LONGEST_ASKED_PAUSE = 60.0  # what a service may ask for by Retry-After; more is refused instead of waited for


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


DONE_BEFORE = Reply(0, {}, b"")  # instead of an answer: the request whose answer was lost did the work


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # below the version of the API
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = True  # may be sent once more when nobody knows whether it arrived
    # Refusals which, after a lost answer, mean that the first request did what was asked.
    done: frozenset[str] = frozenset()
    held: float = 0.0  # seconds the service may keep it, beside the time an answer takes

    def at_once(self) -> Request:
        """The same, answered without waiting."""
        return replace(self, path=self.path.partition("?")[0], held=0.0)


class Pause(NamedTuple):
    seconds: float


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is sent again, at most."""

    retries: int = 4


Talk = Generator[Request | Pause, Reply, Answer]


def ask(
    method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
    again: bool = True, done: tuple[str, ...] = (), held: float = 0.0,
) -> Request:  # fmt: skip
    given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    data = None if body is None else _written(body)
    return Request(method, f"{path}?{urlencode(given)}" if given else path, data, headers or {}, again, frozenset(done), held)


def _written(body: Any) -> bytes:
    try:
        return encode(body)
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        raise InvalidPayload(_culprit(body), f"cannot be written as JSON ({problem}): use plain values, lists and objects") from None


def _culprit(body: Any) -> str:
    """The field that cannot be written."""
    for name, value in body.items() if isinstance(body, dict) else ():
        try:
            encode(value)
        except (TypeError, ValueError, RecursionError, OverflowError):
            return str(name)
    return "body"


def part(value: object) -> str:
    """A name or an id as a part of a path."""
    try:
        text = str(value).encode()
    except UnicodeEncodeError:
        text = b""
    if not text:
        raise InvalidInput("name", f"{value!r} is no name: give at least one printable character")
    return quote(text, safe="")


def converse(talk: Talk[Answer], patience: Patience) -> Talk[Answer]:
    """The talk as a transport carries it out. ServiceUnreachable is to be thrown in where no answer came."""
    step = next(talk)
    while True:
        try:
            try:
                heard = yield from _heard(step, patience)
            except DuetimeError as problem:
                step = talk.throw(problem)
            else:
                step = talk.send(heard)
        except StopIteration as done:
            answer: Answer = done.value
            return answer


def _heard(step: Request | Pause, patience: Patience) -> Talk[Reply]:
    if isinstance(step, Pause):
        return (yield step)
    request = with_key(step)
    lost = False  # whether a request was sent whose answer never came
    for number in range(patience.retries + 1):
        last = number == patience.retries
        try:
            reply = yield request
        except ServiceUnreachable as problem:
            lost = lost or problem.sent
            if last or (problem.sent and not request.again):
                raise
            yield Pause(backoff(number))
            continue
        if reply.status < 300:
            return reply
        refused = problem_of(reply.status, reply.headers, reply.body)
        if lost and refused.code in request.done:
            return DONE_BEFORE
        wait = _wait(reply, refused, number)
        if last or wait is None or (reply.status in (502, 504) and not request.again):
            raise refused
        lost = lost or reply.status in (502, 504)  # somebody in between gave up: the service may have done it
        yield Pause(wait)
    raise AssertionError("the last try returns or raises")


def with_key(request: Request) -> Request:
    """Every POST has a key of its own, so that the service carries it out once, however often it is sent."""
    if request.method != "POST" or "Idempotency-Key" in request.headers:
        return request
    return replace(request, headers={**request.headers, "Idempotency-Key": random_bytes(16).hex()})


def backoff(number: int) -> float:
    """Longer each time, and spread, so that many clients do not come back at once."""
    return float(min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) * (0.5 + noise()))


def _wait(reply: Reply, refused: DuetimeError, number: int) -> float | None:
    """Before the next try; None when there is no point in one."""
    if reply.status not in BUSY and refused.code != IN_PROGRESS:
        return None
    asked = reply.headers.get("retry-after", "")
    if not (asked.isascii() and asked.isdigit()):
        return backoff(number)
    return max(float(asked), backoff(number)) if float(asked) <= LONGEST_ASKED_PAUSE else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else encode(value).decode().strip('"')
