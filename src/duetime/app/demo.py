"""Sample schedules that call the echo endpoint of a service in local mode. They can be removed without a
trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duetime.model.job import Overlap
from duetime.model.retry import Retry
from duetime.model.when import Cron, Every, When

LABEL = ("demo", "duetime")
ECHO = "/demo/echo"


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    text: str
    when: When
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)
    later: bool = False  # the agent answers 202 and reports
    at_once: bool = False  # trigger one job now

    def target(self, address: str) -> dict[str, Any]:
        return {"type": "http", "url": f"{address}{ECHO}{self.path}", "async": self.later}

    @property
    def all_options(self) -> dict[str, Any]:
        return {"payload": {"from": self.name}, "labels": dict([LABEL]), **self.options}


EXAMPLES = (
    Example("demo.pulse", "succeeds, every 5 seconds", Every("5s"), "/hello"),
    Example(
        "demo.orders",
        "one job in three fails at first and is tried again",
        Every("10s"),
        "/flaky",
        {"retry": Retry(max_attempts=5, first_delay="2s", max_delay="10s")},
    ),
    Example(
        "demo.report",
        "works for 12 seconds and tells how far it is",
        Every("20s"),
        "/later/12",
        {"overlap": Overlap.SKIP, "timeout": "20s"},
        later=True,
    ),
    Example(
        "demo.broken",
        "never succeeds: ends among the dead letters",
        Every("2m"),
        "/status/500",
        {"retry": Retry(max_attempts=2, first_delay="1s"), "max_runs": 30},
        at_once=True,
    ),
    Example(
        "demo.weekdays",
        "waits for 9 o'clock in Berlin, Monday to Friday",
        Cron("0 9 * * MON-FRI", tz="Europe/Berlin"),
        "/morning",
    ),
)
