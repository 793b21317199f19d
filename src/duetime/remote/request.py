"""Calls of a service, without input or output. A call is a generator: it yields requests and pauses, and
receives replies.

`run_call` stands between a call and a transport. It repeats requests that may be repeated, waits as long
as the service asks for, and raises the errors that the service reports.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from duetime import errors
from duetime.clock import noise
from duetime.errors import (
    AccessDenied,
    DuetimeError,
    InvalidInput,
    InvalidPayload,
    JobFailed,
    RateLimited,
    ServiceError,
    ServiceUnreachable,
)
from duetime.model.codec import decode, encode, refuse_nan
from duetime.model.ids import random_bytes
from duetime.model.views import from_json

# From a problem that the service reports to the exception the library raises for the same code.


MEDIA_TYPE = "application/problem+json"
MAX_EXCERPT = 200
GIVE_KEY = 'pass it as key="dt_...", on the command line with DUETIME_KEY or --key-file'
KINDS: dict[str, type[DuetimeError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, DuetimeError)
    and not issubclass(kind, ServiceError | JobFailed)
}


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> DuetimeError:
    reported = _problem_json(headers, body)
    if reported is None:
        return ServiceError(
            f"the server answered {status} without problem+json: {_excerpt(status, headers, body)}", status
        )
    problem = _exception(status, reported)
    if request_id := reported.get("request_id"):
        problem.add_note(f"request id {request_id}")
    return problem


def _exception(status: int, reported: dict[str, Any]) -> DuetimeError:
    code, field = reported.get("code"), reported.get("field")
    detail = _for_clients(str(code), str(reported.get("detail", "no reason given")))
    kind = KINDS.get(str(code))
    if kind is None:
        by_status = AccessDenied if status in (401, 403) else RateLimited if status == 429 else ServiceError
        return by_status(detail, status, code, field)
    if issubclass(kind, InvalidInput):
        name = str(field or "body")
        return kind(name, detail.removeprefix(f"{name}: "))
    return kind(detail)


def _for_clients(code: str, detail: str) -> str:
    """The detail speaks of HTTP; users of a client need the names of its options."""
    match code:
        case "key_missing":
            return (
                f"the service needs a key: {GIVE_KEY}; `duetime key create NAME --scopes submit` "
                f"makes one on the store"
            )
        case "key_invalid":
            return (
                f"key: {detail.removeprefix('Authorization: ')}; copy the whole key, as `duetime key "
                f"create` printed it"
            )
        case "key_revoked" | "key_expired":
            return f"key: {detail.removeprefix('Authorization: ')}"
        case "scope_missing":
            return f"{detail}; me() lists the scopes of this key"
        case "not_found":
            return (
                "the service does not know this address: use its base URL without /ui, and a "
                "service as new as this client"
            )
        case _:
            return detail


def _problem_json(headers: Mapping[str, str], body: bytes) -> dict[str, Any] | None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        return None
    try:
        reported = decode(body)
    except ValueError:
        return None
    return reported if isinstance(reported, dict) else None


def _excerpt(status: int, headers: Mapping[str, str], body: bytes) -> str:
    if 300 <= status < 400:
        return (
            f"it redirects to {headers.get('location', 'nowhere')!r}, which the client does not "
            f"follow: use that address if it is right"
        )
    text = " ".join(body[: 4 * MAX_EXCERPT].decode("utf-8", "replace").split())
    return f"{text[:MAX_EXCERPT] or '(empty)'}; check that the address is that of a Duetime service"


Answer = TypeVar("Answer")
BUSY = frozenset({429, 502, 503, 504})
GATEWAY_FAILED = (502, 504)  # the service may have received the request
IN_PROGRESS = "idempotency_in_progress"
FIRST_RETRY_DELAY, MAX_RETRY_DELAY = 0.1, 10.0  # seconds
MAX_RETRY_AFTER = 60.0  # seconds; a service that asks for more is an error


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


DONE_BEFORE = Reply(0, {}, b"")  # in place of a reply: an earlier request, whose reply was lost, did the work


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    method: str
    path: str  # below the version of the API
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True  # may be sent again if it is unknown whether it arrived
    # Error codes that, after a lost reply, mean that the first request did the work.
    done: frozenset[str] = frozenset()
    held: float = 0.0  # seconds the service may hold the request before it replies

    def without_hold(self) -> ServiceRequest:
        return replace(self, path=self.path.partition("?")[0], held=0.0)


class Pause(NamedTuple):
    seconds: float


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    retries: int = 4  # of one request


Call = Generator[ServiceRequest | Pause, Reply, Answer]


def request(
    method: str,
    path: str,
    body: Any = None,
    *,
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    repeatable: bool = True,
    done: tuple[str, ...] = (),
    held: float = 0.0,
) -> ServiceRequest:
    given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    data = None if body is None else _encoded(body)
    return ServiceRequest(
        method,
        f"{path}?{urlencode(given)}" if given else path,
        data,
        headers or {},
        repeatable,
        frozenset(done),
        held,
    )


def read(kind: type[Answer], reply: Reply) -> Answer:
    try:
        return from_json(kind, reply.body)
    except ValueError as problem:
        if reply.headers.get("content-type", "").partition(";")[0].strip() == "text/html":
            raise ServiceError(
                "got HTML instead of JSON: use the base URL of the service, without /ui or another path"
            ) from None
        remedy = "check that it is a Duetime service of a similar version"
        raise ServiceError(f"the reply cannot be read ({problem}): {remedy}") from None


def path_part(value: object) -> str:
    """A name or an id, quoted for a path."""
    try:
        text = str(value).encode()
    except UnicodeEncodeError:
        text = b""
    if not text:
        raise InvalidInput("name", f"{value!r} is not a name: use at least one printable character")
    return quote(text, safe="")


def run_call(call: Call[Answer], policy: RetryPolicy) -> Call[Answer]:
    """The call for a transport. The transport throws ServiceUnreachable into it if no reply came."""
    step = next(call)
    while True:
        try:
            try:
                reply = yield from _run_step(step, policy)
            except DuetimeError as problem:
                step = call.throw(problem)
            else:
                step = call.send(reply)
        except StopIteration as done:
            answer: Answer = done.value
            return answer


def _run_step(step: ServiceRequest | Pause, policy: RetryPolicy) -> Call[Reply]:
    if isinstance(step, Pause):
        return (yield step)
    request = with_idempotency_key(step)
    lost = False  # a request may have arrived although no reply came
    for number in range(policy.retries + 1):
        last = number == policy.retries
        try:
            reply = yield request
        except ServiceUnreachable as problem:
            lost = lost or problem.sent
            if last or (problem.sent and not request.repeatable):
                raise
            yield Pause(backoff(number))
            continue
        if reply.status < 300:
            return reply
        problem_reported = problem_of(reply.status, reply.headers, reply.body)
        if lost and problem_reported.code in request.done:
            return DONE_BEFORE
        delay = _retry_delay(reply, problem_reported, number)
        if last or delay is None or (reply.status in GATEWAY_FAILED and not request.repeatable):
            raise problem_reported
        lost = lost or reply.status in GATEWAY_FAILED
        yield Pause(delay)
    raise AssertionError("the last try returns or raises")


def with_idempotency_key(request: ServiceRequest) -> ServiceRequest:
    """Every POST has its own key, so that the service executes it once, however often it is sent."""
    if request.method != "POST" or "Idempotency-Key" in request.headers:
        return request
    return replace(request, headers={**request.headers, "Idempotency-Key": random_bytes(16).hex()})


def backoff(number: int) -> float:
    """Seconds before the next try: longer each time, and random, so that many clients do not return at the
    same time."""
    return float(min(FIRST_RETRY_DELAY * 2**number, MAX_RETRY_DELAY) * (0.5 + noise()))


def _retry_delay(reply: Reply, problem: DuetimeError, number: int) -> float | None:
    """None: another try cannot succeed."""
    if reply.status not in BUSY and problem.code != IN_PROGRESS:
        return None
    retry_after = reply.headers.get("retry-after", "")
    if not (retry_after.isascii() and retry_after.isdigit()):
        return backoff(number)
    return max(float(retry_after), backoff(number)) if float(retry_after) <= MAX_RETRY_AFTER else None


def _encoded(body: Any) -> bytes:
    try:
        data = encode(body)
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        raise InvalidPayload(
            _culprit(body), f"cannot be written as JSON ({problem}): use plain values, lists and objects"
        ) from None
    if b"null" in data and isinstance(body, dict):
        for name, value in body.items():
            refuse_nan(value, name)
    return data


def _culprit(body: Any) -> str:
    """The field that cannot be encoded."""
    for name, value in body.items() if isinstance(body, dict) else ():
        try:
            encode(value)
        except (TypeError, ValueError, RecursionError, OverflowError):
            return str(name)
    return "body"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else encode(value).decode().strip('"')
