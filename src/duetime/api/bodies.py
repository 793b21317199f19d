"""Request bodies: read up to a limit, then parsed strictly. JSON that parsers read differently is refused."""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive

from duetime.api.problems import ApiProblem, invalid, place_of
from duetime.model.codec import MAX_DEPTH

MAX_BODY = 256 * 1024
MAX_KEYS = 1_000
MAX_BATCH_BODY = 16 * 1024 * 1024
MAX_BATCH_KEYS = 400_000
LARGE_BODY = 1024 * 1024
EMPTY_BODIES = (b"", b"{}", b"null")
MAX_LENGTH_DIGITS = 12  # of a Content-Length
Place = tuple[Any, str | int] | None  # the place around a value, and its key or number there


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body. Stops reading when it is too large."""
    check_headers(request.headers, limit)
    return await gather(request.receive, limit)


def check_headers(headers: Mapping[str, str], limit: int) -> None:
    length = headers.get("content-length")
    if length is not None and (
        len(length) > MAX_LENGTH_DIGITS or not length.isdecimal() or int(length) > limit
    ):
        _too_large(limit)
    if headers.get("content-encoding", "identity") != "identity":
        raise ApiProblem(
            415,
            "media_type_unsupported",
            "compressed bodies are not supported: send it uncompressed",
            "Content-Encoding",
        )


def is_large(headers: Mapping[str, str], limit: int) -> bool:
    """Whether the body may be so large that only a few fit into memory."""
    check_headers(headers, limit)
    return limit > LARGE_BODY and int(headers.get("content-length", limit)) > LARGE_BODY


async def gather(receive: Receive, limit: int) -> bytes:
    data, more = bytearray(), True
    while more:
        message = await _received(receive)
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if len(data) > limit:
            _too_large(limit)
    return bytes(data)


async def refuse_body(receive: Receive) -> None:
    """For routes without a body: what it asks for would not be done. An empty value asks for nothing."""
    data, more = b"", True
    while more:
        message = await _received(receive)
        data += b"".join(message.get("body", b"").split())
        more = message.get("more_body", False)
        if not any(empty.startswith(data) if more else empty == data for empty in EMPTY_BODIES):
            detail = "body: this address takes none: leave it out; /docs lists what it takes"
            raise ApiProblem(422, "input_invalid", detail, "body")


async def _received(receive: Receive) -> Message:
    message = await receive()
    if message["type"] != "http.request":
        raise ApiProblem(400, "request_incomplete", "the connection ended before the body")
    return message


def check_type(value: str | None) -> None:
    if value == "application/json":
        return
    name, _, parameters = (value or "").lower().partition(";")
    charset = parameters.replace('"', "").strip()
    if name.strip() != "application/json" or (charset and charset != "charset=utf-8"):
        raise ApiProblem(
            415,
            "media_type_unsupported",
            "the body must be JSON: send Content-Type: application/json",
            "Content-Type",
        )


def parse(data: bytes, max_keys: int = MAX_KEYS) -> Any:
    """The JSON value in `data`. Some clients on Windows begin it with a byte order mark."""
    if not data:
        _malformed("the body is empty: send JSON")
    pairs = _Pairs(max_keys)
    try:
        value = json.loads(
            data.removeprefix(BOM_UTF8).decode("utf-8"),
            object_pairs_hook=pairs,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        _malformed("the body is not UTF-8")
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        _malformed(f"the body is not JSON: {problem.msg} at {where}")
    except RecursionError:
        _too_deep()
    except ValueError:
        raise ApiProblem(
            422, "input_invalid", "body: contains a number with too many digits: send it as text", "body"
        ) from None
    # A cheap test on the bytes: most bodies need no recursive check.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH or b"\\u" in data:
        _check_value(value, None, MAX_DEPTH)
    return value


def validated(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        raise invalid(problem.errors(include_url=False, include_context=False, include_input=False)) from None


class _Pairs:
    """Makes objects, counts their keys, and refuses duplicate keys."""

    __slots__ = ("_left",)

    def __init__(self, limit: int) -> None:
        self._left = limit

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._left -= len(pairs)
        if self._left < 0:
            raise ApiProblem(
                422,
                "too_many_keys",
                "the body has too many keys: store large data elsewhere and pass a reference",
                "body",
            )
        made = dict(pairs)
        if len(made) < len(pairs):
            double = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ApiProblem(422, "key_duplicate", f"duplicate key {double!r}", double)
        return made


def _refuse_constant(name: str) -> NoReturn:
    _malformed(f"{name} is not JSON: numbers are finite")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ApiProblem(
            422, "input_invalid", f"body: the number {text[:40]} is too large: send it as text", "body"
        )
    return number


def _check_value(value: Any, place: Place, depth: int) -> None:
    if depth == 0:
        _too_deep()
    match value:
        case str():
            _check_text(value, place)
        case dict():
            for key, item in value.items():
                _check_text(key, place)
                _check_value(item, (place, key), depth - 1)
        case list():
            for number, item in enumerate(value):
                _check_value(item, (place, number), depth - 1)


def _check_text(text: str, place: Place) -> None:
    if "\0" in text:
        _refuse_text(place, "text must not contain the NUL character")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse_text(place, "invalid Unicode: unpaired surrogate")


def _refuse_text(place: Place, reason: str) -> NoReturn:
    """Writes the place only now: written for every value, a long key would cost its length each time."""
    parts: list[str | int] = []
    while place is not None:
        place, part = place
        parts.insert(0, part)
    field = place_of(parts)
    raise ApiProblem(422, "input_invalid", f"{field}: {reason}", field)


def _malformed(detail: str) -> NoReturn:
    raise ApiProblem(400, "json_malformed", detail, "body") from None


def _too_deep() -> NoReturn:
    raise ApiProblem(
        422, "too_deep", f"the body is nested deeper than {MAX_DEPTH} levels: flatten it", "body"
    )


def _too_large(limit: int) -> NoReturn:
    remedy = "store large data elsewhere and pass a reference"
    raise ApiProblem(
        413,
        "body_too_large",
        f"the body is over the limit of {limit:,} bytes: {remedy}",
        "body",
        {"Connection": "close"},
    )
