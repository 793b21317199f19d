"""The values of settings. Each function reads what a user wrote, or raises ValueError with a sentence that
says how to write it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from duetime.errors import InvalidInput
from duetime.model import destination, duration
from duetime.model.destination import Destination
from duetime.model.limit import parse_rate
from duetime.model.retry import MAX_ATTEMPTS

YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
MAX_CONCURRENCY = 10_000
MAX_PROCESSES = 1_000
MAX_PENDING = 100_000_000
MAX_QUEUE_DEPTH = 1_000_000
MAX_LOAD = 100
MAX_PORT = 65_535
ROLES = ("api", "planner", "dispatcher", "worker")

Parser = Callable[[Any], Any]


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text that is not empty")
    return value.strip()


def app_path(value: Any) -> str:
    module, colon, name = text(value).partition(":")
    if not module or (colon and not name):
        raise ValueError(f"{value!r} must be written module:app, or module if it has only one App")
    return f"{module}{colon}{name}"


def names(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be names separated by commas, or a list of names")
    names = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not names:
        raise ValueError("must name at least one")
    return names


def among(known: tuple[str, ...]) -> Parser:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in known:
            raise ValueError(f"{value!r} is not one of {', '.join(known)}")
        return value.lower()

    return parse


def roles(value: Any) -> tuple[str, ...]:
    one_role = among(ROLES)
    return tuple(one_role(name) for name in names(value))


def whole(low: int, high: int, expected: str) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
            raise ValueError(
                f"{value!r} must be a {expected} from 1 to {high:,}"
                + ("" if low else ", or 0 for any free port")
            )
        return int(text)

    return parse


count = whole(1, MAX_CONCURRENCY, "whole number")
depth = whole(1, MAX_QUEUE_DEPTH, "whole number")
pending = whole(1, MAX_PENDING, "whole number")
processes = whole(1, MAX_PROCESSES, "whole number")
attempts = whole(1, MAX_ATTEMPTS, "whole number")
port = whole(0, MAX_PORT, "port")


def ports(value: Any) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(port(part) for part in parts))


def yes_or_no(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in (*YES, *NO):
        raise ValueError(f"{value!r} must be yes or no")
    return word in YES


def rate(value: Any) -> str:
    try:
        parse_rate(value, "rate")
    except InvalidInput as problem:
        raise ValueError(problem.reason) from None
    return str(value).strip()


def networks(value: Any) -> tuple[str, ...]:
    for name in names(value):
        try:
            ip_network(name)
        except ValueError:
            raise ValueError(f"{name!r} is not a network: write 10.1.0.0/16 or an address") from None
    return names(value)


def destinations(value: Any) -> tuple[Destination, ...]:
    if isinstance(value, str):
        entries = [entry.partition("=") for entry in value.split()]
        value = {name: url for name, _, url in entries} if all(url for _, _, url in entries) else None
    if not isinstance(value, Mapping):
        raise ValueError("must be a table of names and URLs; as a variable NAME=URL, separated by blanks")
    return destination.parse(value)


def url(value: Any) -> str:
    parts = urlsplit(given := text(value))
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise ValueError(f"{value!r} must be written like https://duetime.example.org")
    return given.rstrip("/")


def processor_load(value: Any) -> float:
    try:
        load = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        load = math.nan
    if not 0 < load <= MAX_LOAD:
        raise ValueError(
            f"{value!r} must be a number above 0 and at most {MAX_LOAD}: 1 means that every core is busy"
        )
    return load


def lapse(shortest: str) -> Parser:
    def parse(value: Any) -> str:
        try:
            micros = duration.parse(value, "")
        except InvalidInput as problem:
            raise ValueError(problem.reason) from None
        if micros < duration.parse(shortest, ""):
            raise ValueError(f"{value!s} is too short: use {shortest} or more")
        return str(value).strip()

    return parse


def kept(value: Any) -> tuple[tuple[str, str], ...]:
    parse, found = lapse("1m"), []
    for text in names(value):
        name, equals, kept = text.partition("=")
        if not (name and equals):
            raise ValueError(f"{text!r} must be written QUEUE=TIME, such as billing=90d")
        found.append((name.strip(), parse(kept)))
    return tuple(found)


def trace_share(value: Any) -> float:
    """How many of the traces are exported."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{value!s} must be a number from 0 to 1, such as 0.1")
    return share


def trace_link(value: Any) -> str:
    """The address of a page that shows a trace."""
    given = str(value).strip()
    if not given.startswith(("http://", "https://")) or "{trace_id}" not in given:
        raise ValueError(
            f"{given!r} is not a URL with {{trace_id}}: use https://traces.example.org/trace/{{trace_id}}"
        )
    return given
