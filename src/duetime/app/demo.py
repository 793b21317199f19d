"""Example schedules that call the echo agent of a service in local mode: something to look at within a minute, and gone without a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.engine.drafts import NO_DEFAULTS, schedule_draft
from duetime.model.job import Overlap
from duetime.model.retry import Retry
from duetime.model.schedule import ScheduleFilter
from duetime.model.target import HTTP, HttpTarget
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
    at_once: bool = False  # one job of it now, so that nobody has to wait

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
    Example("demo.weekdays", "waits for 9 o'clock in Berlin, Monday to Friday", Cron("0 9 * * MON-FRI", tz="Europe/Berlin"), "/morning"),
)


async def add_examples(app: Operations, address: str) -> None:
    """`address` is where the service answers or will answer. What is there already stays as it is."""
    for example in EXAMPLES:
        options = example.all_options
        draft = schedule_draft(app.ids, app.tenant, example.name, HTTP, example.when, NO_DEFAULTS, await app.now(), options)
        wanted = replace(draft, target_spec=HttpTarget.from_json(example.target(address)).to_spec())
        stored = await app.put_schedule(wanted, replace=True)
        if example.at_once and stored.id == wanted.id:
            await app.trigger(example.name)


async def remove_examples(app: Operations) -> int:
    """The schedules, what waits or runs of them, and their dead letters; how many schedules it were."""
    removed = await app.bulk_schedules("remove", ScheduleFilter(app.tenant, label=LABEL))
    for action in ("cancel", "discard"):
        done = await app.bulk_jobs(action, JobQuery(label=LABEL))
        while done.next is not None:
            done = await app.bulk_jobs(action, JobQuery(label=LABEL), after=done.next)
    return removed.done
