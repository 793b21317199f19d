"""From typed text to values: payloads, instants, labels, targets and rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from duetime.cli.files import read_text
from duetime.errors import InvalidInput, InvalidPayload, InvalidWhen
from duetime.model.when import At, Cron, Every, RRule, When

ISO = "use a form such as 2030-01-01T09:00:00Z or 2030-01-01T09:00:00+01:00"

Target = str | dict[str, Any]  # the name of a task, or an HTTP target


def read_payload(text: str | None) -> Any:
    """JSON as given, from a file (@name) or from stdin (-)."""
    if text is None:
        return {}
    try:
        return json.loads(_payload_text(text), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise InvalidPayload(
            "payload",
            f'is not JSON ({problem}): use a form such as \'{{"customer": "c1"}}\', @file.json or -',
        ) from None


def _payload_text(text: str) -> str:
    if not text.startswith("@") and text != "-":
        return text
    try:
        return sys.stdin.read() if text == "-" else read_text(text[1:])
    except ValueError as problem:  # also for text that is not UTF-8
        name = "stdin" if text == "-" else repr(text[1:])
        raise InvalidPayload("payload", f"{name} cannot be read: {problem}") from None


def _refuse_constant(name: str) -> Any:
    raise InvalidPayload("payload", f"{name} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidPayload(
            "payload", f"has {next(name for name in names if names.count(name) > 1)!r} twice"
        )
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
    """The instant, if one is given; not together with a delay."""
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


def read_target(text: str, method: str | None = None) -> Target:
    """The name of a task, or a URL to call."""
    if "://" in text:
        return {"type": "http", "url": text, **({} if method is None else {"method": method})}
    if method is not None:
        raise InvalidInput("method", "works only with a URL: leave it out for a task")
    return text


def read_when(cron: str | None, every: str | None, at: str | None, rrule: str | None, tz: str | None) -> When:
    """Exactly one of the four; a time zone only for --cron and --rrule."""
    given = [
        name
        for name, value in (("cron", cron), ("every", every), ("at", at), ("rrule", rrule))
        if value is not None
    ]
    if len(given) != 1:
        found = " and ".join(f"--{name}" for name in given) or "nothing"
        raise InvalidWhen("when", f"{found} given: use one of --cron, --every, --at, --rrule")
    if tz is not None and given[0] in ("every", "at"):
        raise InvalidWhen("tz", f"does not apply to --{given[0]}: leave it out")
    if cron is not None:
        return Cron(cron, tz or "UTC")
    if every is not None:
        return Every(every)
    if rrule is not None:
        return RRule(rrule.replace("\\n", "\n"), tz or "UTC")
    moment = read_instant(at, "at")
    assert moment is not None
    return At(moment)
