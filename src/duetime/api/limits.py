"""Request bodies: read up to a limit, then parsed strictly. What two parsers could read in two ways is refused (S50)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import Receive

from duetime.api.problems import Refused, invalid
from duetime.model.codec import DEEPEST

if TYPE_CHECKING:
    from duetime.api.auth import Caller

LARGEST_BODY = 256 * 1024
MOST_KEYS = 1_000
LARGEST_BATCH = 16 * 1024 * 1024
MOST_BATCH_KEYS = 400_000


class RateLimit(Protocol):
    """How often a key may ask. Raises Refused(429) with Retry-After."""

    def spend(self, caller: Caller) -> None: ...


class Unlimited:
    """Local mode: whoever is on this machine may ask as often as they like."""

    def spend(self, caller: Caller) -> None:
        return None


async def read_body(request: Request, largest: int) -> bytes:
    """The whole body; one that is too large is refused without being read to its end."""
    check_body(request.headers, largest)
    return await gather(request.receive, largest)


def check_body(headers: Mapping[str, str], largest: int) -> None:
    length = headers.get("content-length")
    if length is not None and (not length.isdigit() or int(length) > largest):
        _too_large(largest)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "media_type_unsupported", "compressed bodies are not understood: send it as it is", "Content-Encoding")


async def gather(receive: Receive, largest: int) -> bytes:
    data, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "request_incomplete", "the connection ended before the body did")
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if len(data) > largest:
            _too_large(largest)
    return data


def check_type(value: str | None) -> None:
    if value == "application/json":
        return
    name, _, parameters = (value or "").lower().partition(";")
    charset = parameters.replace('"', "").strip()
    if name.strip() != "application/json" or (charset and charset != "charset=utf-8"):
        raise Refused(415, "media_type_unsupported", "the body must be JSON: send Content-Type: application/json", "Content-Type")


def parse(data: bytes, most_keys: int = MOST_KEYS) -> Any:
    """The JSON value in `data`."""
    pairs = _Pairs(most_keys)
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_float=_finite, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise Refused(400, "json_malformed", "the body is not UTF-8: JSON is") from None
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise Refused(400, "json_malformed", f"the body is not JSON: {problem.msg} at {where}") from None
    except RecursionError:
        _too_deep()
    except ValueError:
        raise Refused(422, "input_invalid", "body: holds a number with too many digits: write it as text", "body") from None
    # The bytes tell cheaply whether a closer look is needed.
    if data.count(b"{") + data.count(b"[") > DEEPEST or b"\\u" in data:
        _look_closer(value, "", DEEPEST)
    return value


def validated(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        raise invalid(problem.errors(include_url=False, include_context=False, include_input=False)) from None


class _Pairs:
    """Makes objects, counts their keys and refuses one that is given twice."""

    __slots__ = ("_left",)

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self._left -= len(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            double = next(name for name in names if names.count(name) > 1)
            raise Refused(422, "key_duplicate", f"{double!r} is given twice in one object: which one counts?", double)
        if self._left < 0:
            raise Refused(422, "too_many_keys", "the body has too many keys: send large data elsewhere and pass a reference", "body")
        return made


def _refuse_constant(name: str) -> NoReturn:
    raise Refused(400, "json_malformed", f"{name} is not JSON: numbers are finite")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Refused(422, "input_invalid", f"body: the number {text[:40]} is too large: write it as text", "body")
    return number


def _look_closer(value: Any, place: str, depth: int) -> None:
    if depth == 0:
        _too_deep()
    match value:
        case str():
            _check_text(value, place)
        case dict():
            for key, item in value.items():
                _check_text(key, place)
                _look_closer(item, f"{place}.{key}" if place else key, depth - 1)
        case list():
            for number, item in enumerate(value):
                _look_closer(item, f"{place}[{number}]", depth - 1)


def _check_text(text: str, place: str) -> None:
    if "\0" in text:
        raise Refused(422, "input_invalid", f"{place or 'body'}: text must not contain the NUL character", place or "body")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused(
            422, "input_invalid", f"{place or 'body'}: half of a surrogate pair is no character: send whole ones", place or "body"
        )


def _too_deep() -> NoReturn:
    raise Refused(422, "too_deep", f"the body is nested deeper than {DEEPEST} levels: flatten it", "body")


def _too_large(largest: int) -> NoReturn:
    remedy = "send large data elsewhere and pass a reference"
    raise Refused(413, "body_too_large", f"the body is over the limit of {largest:,} bytes: {remedy}", "body", {"Connection": "close"})
