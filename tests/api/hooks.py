"""For schemathesis: values of our own formats, and time ranges in order."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi.coverage import _schema as coverage
from schemathesis.specs.openapi.formats import format_length_bounds

from duetime.model.retry import Retry, effective_retry
from duetime.model.schedule import Missed, effective_missed

UNITS = st.sampled_from(["ms", "s", "m", "h", "d"])
WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=1, max_size=20)
INSTANT = "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}Z"
FORMATS: dict[str, st.SearchStrategy[str]] = {
    "date-time": st.builds(
        INSTANT.format,
        st.integers(1971, 9997),
        st.integers(1, 12),
        st.integers(1, 28),
        st.integers(0, 23),
        st.integers(0, 59),
        st.integers(0, 59),
    ),
    "duetime-codes": st.sampled_from(["2xx", "3xx", "200-204"]),
    "duetime-cron": st.builds("{} {} * * *".format, st.integers(0, 59), st.integers(0, 23)),
    "duetime-cursor": st.nothing(),
    "duetime-destination": st.sampled_from(["orders", "audit-log"]),
    "duetime-message-key": WORDS,
    "duetime-duration": st.builds("{}{}".format, st.integers(0, 99), UNITS),
    "duetime-duration-positive": st.builds("{}{}".format, st.integers(1, 99), UNITS),
    "duetime-event-types": st.lists(st.sampled_from(["job", "schedule", "node", "queue"]), min_size=1).map(
        ",".join
    ),
    "duetime-email": st.text("abcxyz", min_size=1, max_size=8).map("{}@example.org".format),
    "duetime-expiry": st.sampled_from(["1s", "10m", "9998-01-01T00:00:00Z"]),
    "duetime-etag": st.integers(1, 9).map('"{}"'.format),
    "duetime-frequency": st.sampled_from(["once", "10m", "daily", "0 9 * * *"]),
    "duetime-folder": st.text("abc", max_size=8).map("/{}".format),
    "duetime-word": st.text("abcxyz/-", min_size=1, max_size=8),
    "duetime-id-part": st.text("0123456789abcdef", min_size=4, max_size=32),
    "duetime-header-name": st.text("abcxyz", min_size=1, max_size=8).map("X-{}".format),
    "duetime-header-value": st.text("abcxyz123", max_size=8),
    "duetime-interval": st.builds("{}{}".format, st.integers(1, 59), st.sampled_from(["s", "m", "h"])),
    "duetime-jitter": st.sampled_from(["0s", "30s", "1s..5s"]),
    "duetime-key": WORDS,
    "duetime-lease": st.builds("{}s".format, st.integers(1, 600)),
    "duetime-method": st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    "duetime-name": WORDS,
    "duetime-rate": st.builds("{}/{}s".format, st.integers(1, 99), st.integers(1, 99)),
    "duetime-rrule": st.integers(1, 9).map("FREQ=DAILY;INTERVAL={}".format),
    "duetime-signing-secret": st.just("whsec_" + base64.b64encode(b"s" * 32).decode()),
    "duetime-since": st.builds("{}{}".format, st.integers(1, 24), st.sampled_from(["m", "h"])),
    "duetime-step": st.builds("{}m".format, st.integers(1, 90)),
    "duetime-timeout": st.builds("{}{}".format, st.integers(1, 59), st.sampled_from(["s", "m"])),
    # One host: a target that moves to another one needs its secret headers again.
    "duetime-url": st.builds(
        "https://agent.example/{}/{}".format, st.sampled_from("abc"), st.integers(0, 99)
    ),
    "duetime-wait": st.builds("{}ms".format, st.integers(0, 50)),
    "duetime-zone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
}
# How short and how long these values are. schemathesis also wants values with the least and the most characters
# that a schema allows; without this table it draws hundreds of values to find that no strategy has them, which
# takes three quarters of the time of its coverage phase.
LENGTHS = {
    "date-time": (20, 20),
    "duetime-cron": (9, 11),
    "duetime-duration": (2, 4),
    "duetime-duration-positive": (2, 4),
    "duetime-expiry": (2, 20),
    "duetime-header-name": (3, 10),
    "duetime-header-value": (0, 8),
    "duetime-id-part": (4, 32),
    "duetime-interval": (2, 3),
    "duetime-jitter": (2, 6),
    "duetime-key": (1, 20),
    "duetime-lease": (2, 4),
    "duetime-message-key": (1, 20),
    "duetime-name": (1, 20),
    "duetime-rate": (4, 6),
    "duetime-rrule": (21, 21),
    "duetime-timeout": (2, 3),
    "duetime-url": (25, 26),
    "duetime-wait": (3, 4),
    "duetime-zone": (3, 16),
}
ORDER = {
    "start_at": "2027-01-01T00:00:00Z",
    "end_at": "9990-01-01T00:00:00Z",
    "from": "2026-01-01T00:00:00Z",
    "to": "2026-01-02T00:00:00Z",
}


def _lengths(name: str, strategy: Any) -> tuple[int, int] | None:
    return LENGTHS.get(name) or format_length_bounds(name, strategy)


def _has_length_of(name: str, value: str) -> bool:
    """Keeps `LENGTHS` true."""
    shortest, longest = LENGTHS.get(name, (0, len(value)))
    return shortest <= len(value) <= longest


coverage.format_length_bounds = _lengths  # type: ignore[attr-defined]
for name, strategy in FORMATS.items():
    schemathesis.openapi.format(name, strategy.filter(partial(_has_length_of, name)))


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Only instants that are right are moved: what is wrong must stay so. A raw body needs a method that has
    one."""
    if not isinstance(body, dict):
        return body
    made: dict[str, Any] = {
        name: ORDER[name] if name in ORDER and _right(value) else value for name, value in body.items()
    }
    when, target = made.get("when"), made.get("target")
    if isinstance(when, dict) and _right(when.get("at")):
        made["when"] = {**when, "at": "2030-01-01T00:00:00Z"}
    if isinstance(target, dict) and target.get("method") == "GET" and target.get("body") == "raw":
        made["target"] = {**target, "method": "POST"}
    if isinstance(made.get("target"), dict):
        made["target"] = _without_doubles(made["target"])
    if isinstance(made.get("jobs"), list):
        made["jobs"] = [map_body(context, one) for one in made["jobs"]]
    return made


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Short time ranges, no long waits, and no settings without effect."""
    query = case.query
    if (body := _with_effect(case.body)) != case.body:  # a body that is set is judged by the schema again
        case.body = body
    if isinstance(query, dict) and query.get("wait") == "30s":
        query["wait"] = "30ms"
    if isinstance(case.body, dict) and case.body.get("wait") == "30s":
        case.body["wait"] = "30ms"
    if isinstance(query, dict) and _right(query.get("to")) and _right(query.get("from", ORDER["from"])):
        query.update({"from": ORDER["from"], "to": ORDER["to"]})


def _without_doubles(target: dict[str, Any]) -> dict[str, Any]:
    """A header is secret or it is not: no schema can say that."""
    plain, secret = target.get("headers"), target.get("secret_headers")
    if not isinstance(plain, dict) or not isinstance(secret, dict):
        return target
    names = {name.lower() for name in plain}
    return {
        **target,
        "secret_headers": {name: value for name, value in secret.items() if name.lower() not in names},
    }


def _with_effect(body: Any) -> Any:
    """Without settings of policies that have no effect next to the others: which ones do depends on values."""
    if isinstance(body, list):
        return [_with_effect(one) for one in body]
    if not isinstance(body, dict):
        return body
    made = {name: _with_effect(value) for name, value in body.items()}
    if isinstance(made.get("retry"), dict):
        made["retry"] = _effective(made["retry"], effective_retry, Retry)
    if isinstance(made.get("missed"), dict):
        made["missed"] = _effective(made["missed"], effective_missed, partial(Missed, "all"))
    return made


def _effective(policy: dict[str, Any], effective: Callable[[Any], Any], make: Callable[..., Any]) -> Any:
    """A setting that is wrong stays."""
    try:
        kept = effective(policy)
        idle = {name: value for name, value in policy.items() if kept[name] != value}
        for name, value in idle.items():
            make(**{name: int(value) if isinstance(value, float) and value.is_integer() else value})
    except (TypeError, ValueError):
        return policy
    return {name: value for name, value in policy.items() if name not in idle}


def _right(value: Any) -> bool:
    try:
        return (
            isinstance(value, str) and len(value) >= 20 and datetime.fromisoformat(value).tzinfo is not None
        )
    except ValueError:
        return False
