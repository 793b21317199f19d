"""Request bodies: read up to a limit, then parsed strictly. JSON that parsers read differently is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import Receive

from duetime.api.problems import ApiProblem, invalid
from duetime.model.codec import MAX_DEPTH

MAX_BODY = 256 * 1024
MAX_KEYS = 1_000
MAX_BATCH_BODY = 16 * 1024 * 1024
MAX_BATCH_KEYS = 400_000


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body. Stops reading when it is too large."""
    check_headers(request.headers, limit)
    return await gather(request.receive, limit)


def check_headers(headers: Mapping[str, str], limit: int) -> None:
    length = headers.get("content-length")
    if length is not None and (not length.isdigit() or int(length) > limit):
        _too_large(limit)
    if headers.get("content-encoding", "identity") != "identity":
        raise ApiProblem(
            415,
            "media_type_unsupported",
            "compressed bodies are not supported: send it uncompressed",
            "Content-Encoding",
        )


async def gather(receive: Receive, limit: int) -> bytes:
    data, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ApiProblem(400, "request_incomplete", "the connection ended before the body")
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if len(data) > limit:
            _too_large(limit)
    return data


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
    """The JSON value in `data`."""
    pairs = _Pairs(max_keys)
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=pairs,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise ApiProblem(400, "json_malformed", "the body is not UTF-8") from None
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ApiProblem(400, "json_malformed", f"the body is not JSON: {problem.msg} at {where}") from None
    except RecursionError:
        _too_deep()
    except ValueError:
        raise ApiProblem(
            422, "input_invalid", "body: contains a number with too many digits: send it as text", "body"
        ) from None
    # A cheap test on the bytes: most bodies need no recursive check.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH or b"\\u" in data:
        _check_value(value, "", MAX_DEPTH)
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
        made = dict(pairs)
        self._left -= len(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            double = next(name for name in names if names.count(name) > 1)
            raise ApiProblem(422, "key_duplicate", f"duplicate key {double!r}", double)
        if self._left < 0:
            raise ApiProblem(
                422,
                "too_many_keys",
                "the body has too many keys: store large data elsewhere and pass a reference",
                "body",
            )
        return made


def _refuse_constant(name: str) -> NoReturn:
    raise ApiProblem(400, "json_malformed", f"{name} is not JSON: numbers are finite")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ApiProblem(
            422, "input_invalid", f"body: the number {text[:40]} is too large: send it as text", "body"
        )
    return number


def _check_value(value: Any, place: str, depth: int) -> None:
    if depth == 0:
        _too_deep()
    match value:
        case str():
            _check_text(value, place)
        case dict():
            for key, item in value.items():
                _check_text(key, place)
                _check_value(item, f"{place}.{key}" if place else key, depth - 1)
        case list():
            for number, item in enumerate(value):
                _check_value(item, f"{place}[{number}]", depth - 1)


def _check_text(text: str, place: str) -> None:
    if "\0" in text:
        raise ApiProblem(
            422,
            "input_invalid",
            f"{place or 'body'}: text must not contain the NUL character",
            place or "body",
        )
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ApiProblem(
            422, "input_invalid", f"{place or 'body'}: invalid Unicode: unpaired surrogate", place or "body"
        )


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
