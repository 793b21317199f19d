"""From what was typed to values: payloads, instants, labels, and the four ways to say when."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from duetime.errors import InvalidInput, InvalidPayload, InvalidWhen
from duetime.model.when import At, Cron, Every, RRule, When

ISO = "write it like 2030-01-01T09:00:00Z or 2030-01-01T09:00:00+01:00"


def read_payload(text: str | None) -> Any:
    """JSON as given, from a file (@name) or from stdin (-)."""
    if text is None:
        return {}
    try:
        return json.loads(_payload_text(text), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise InvalidPayload("payload", f'is not JSON ({problem}): write it like \'{{"customer": "c1"}}\', @file.json or -') from None


def _payload_text(text: str) -> str:
    try:
        if text == "-":
            return sys.stdin.read()
        return Path(text[1:]).read_text("utf-8") if text.startswith("@") else text
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise InvalidPayload("payload", f"{text[1:]!r} cannot be read: {reason}") from None


def _refuse_constant(name: str) -> Any:
    raise InvalidPayload("payload", f"{name} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidPayload("payload", f"has {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def read_instant(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(field, f"{text!r} is not an ISO 8601 instant: {ISO}") from None
    if moment.utcoffset() is None:
        raise InvalidInput(field, f"{text!r} has no time zone: {ISO}")
    return moment


def read_moment(at: str | None, delay: str | None) -> datetime | None:
    """The instant, where one is given; not beside a delay."""
    if at is not None and delay is not None:
        raise InvalidInput("delay", "give either `at` or `delay`, not both")
    return read_instant(at, "at")


def read_labels(pairs: Sequence[str]) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise InvalidInput("label", f"{pair!r} must be written name=value")
        labels[name] = value
    return labels or None


def read_label(pair: str | None) -> tuple[str, str] | None:
    labels = read_labels([] if pair is None else [pair])
    return None if labels is None else next(iter(labels.items()))


def read_target(text: str, method: str | None = None) -> str | dict[str, Any]:
    """A task's name, or a URL that is called."""
    if "://" in text:
        return {"type": "http", "url": text, **({} if method is None else {"method": method})}
    if method is not None:
        raise InvalidInput("method", "is for URLs: leave it out beside a task")
    return text


def read_when(cron: str | None, every: str | None, at: str | None, rrule: str | None, tz: str | None) -> When:
    """Exactly one of the four; a zone only where it has a meaning."""
    given = [name for name, value in (("cron", cron), ("every", every), ("at", at), ("rrule", rrule)) if value is not None]
    if len(given) != 1:
        told = " and ".join(f"--{name}" for name in given) or "nothing"
        raise InvalidWhen("when", f"{told} given: use one of --cron, --every, --at, --rrule")
    if tz is not None and given[0] in ("every", "at"):
        raise InvalidWhen("tz", f"has no meaning with --{given[0]}: leave it out")
    if cron is not None:
        return Cron(cron, tz or "UTC")
    if every is not None:
        return Every(every)
    if rrule is not None:
        return RRule(rrule.replace("\\n", "\n"), tz or "UTC")
    moment = read_instant(at, "at")
    assert moment is not None
    return At(moment)
