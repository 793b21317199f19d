"""Unique jobs: which calls mean the same job, and what happens to the second one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

import duetime as dt
from duetime.engine.submit.build import PLAIN_RULE, unique_key
from duetime.model.unique import Unique
from tests.app.conftest import MakeApp
from tests.app.waiting import soon

EARLY = datetime(2031, 1, 1, tzinfo=UTC)
LATE = EARLY + timedelta(days=1)


def report_task(app: dt.App, **options: Any) -> dt.Task[..., Any]:
    @app.task("report", **options)
    async def report(customer: str, month: str = "May") -> str:
        return f"{customer} {month}"

    return report


async def test_the_same_arguments_are_the_same_job(app: dt.App) -> None:
    report = report_task(app)
    await app.open()
    first = await report.submit(customer="c1", month="June", unique=True, delay="1h")
    again = await report.submit(month="June", customer="c1", unique=True, delay="2h")
    other = await report.submit(customer="c1", month="July", unique=True, delay="1h")
    assert (first.created, first.conflict) == (True, None)
    assert (again.id, again.created, again.conflict) == (first.id, False, "skipped")
    assert (other.id != first.id, other.conflict) == (True, None)


async def test_an_argument_left_out_is_the_same_as_its_default(app: dt.App) -> None:
    report = report_task(app, unique=True)
    await app.open()
    first = await report.submit(customer="c1", delay="1h")
    assert (await report.submit(customer="c1", month="May", delay="1h")).id == first.id


async def test_unique_by_selects_arguments(app: dt.App) -> None:
    report = report_task(app, unique=dt.Unique(by=["customer"]))
    await app.open()
    first = await report.submit(customer="c1", month="June", delay="1h")
    assert (await report.submit(customer="c1", month="July", delay="1h")).id == first.id
    assert (await report.submit(customer="c2", month="June", delay="1h")).created


async def test_another_task_with_the_same_arguments_is_another_job(app: dt.App) -> None:
    await app.open()
    first = await app.submit("one", n=1, unique=True, delay="1h")
    assert (await app.submit("two", n=1, unique=True, delay="1h")).id != first.id


async def test_call_can_opt_out_of_the_tasks_uniqueness(app: dt.App) -> None:
    report = report_task(app, unique=True)
    await app.open()
    first = await report.submit(customer="c1", delay="1h")
    free = await report.submit(customer="c1", delay="1h", unique=False)
    assert (free.id != first.id, free.created) == (True, True)


async def test_unique_true_uses_the_tasks_uniqueness(app: dt.App) -> None:
    report = report_task(app, unique=dt.Unique(by=["customer"]))
    await app.open()
    first = await report.submit(customer="c1", month="June", delay="1h", unique=True)
    assert (await report.submit(customer="c1", month="July", delay="1h", unique=True)).id == first.id


async def test_replace_cancels_the_pending_job(app: dt.App) -> None:
    await app.open()
    first = await app.submit("work", unique_key="k", delay="1h", n=1)
    second = await app.submit("work", unique_key="k", delay="2h", n=2, on_conflict="replace")
    assert (second.id != first.id, second.created, second.conflict) == (True, True, "replaced")
    await first.refresh()
    assert (first.state, "replaced" in (first.error or "")) == ("cancelled", True)
    assert (await app.submit("work", unique_key="k", n=3)).id == second.id


async def test_reschedule_moves_the_pending_job(app: dt.App) -> None:
    await app.open()
    first = await app.submit("work", unique_key="k", at=EARLY, n=1)
    second = await app.submit("work", unique_key="k", at=LATE, n=2, on_conflict=dt.OnConflict.RESCHEDULE)
    assert (second.id, second.created, second.conflict) == (first.id, False, "rescheduled")
    await first.refresh()
    assert (first.due_at, first.payload) == (LATE, {"n": 1})


@pytest.mark.parametrize("on_conflict", ["replace", "reschedule"])
async def test_running_job_is_never_replaced_or_rescheduled(
    app: dt.App, on_conflict: Literal["replace", "reschedule"]
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @app.task("held", unique=dt.Unique(on_conflict=on_conflict))
    async def held() -> str:
        started.set()
        await release.wait()
        return "done"

    async with app.running():
        first = await held.submit()
        await soon(started)
        second = await held.submit(delay="1h")
        assert (second.id, second.conflict) == (first.id, "skipped")
        release.set()
        assert (await first.wait("60s")).result == "done"


async def test_a_job_that_is_over_counts_if_its_state_is_chosen(app: dt.App) -> None:
    report = report_task(app, unique=dt.Unique(states=["pending", "running", "succeeded"], within="1d"))
    async with app.running():
        first = await (await report.submit(customer="c1")).wait("60s")
        assert first.state == "succeeded"
        again = await report.submit(customer="c1")
        plain = await report.submit(customer="c1", unique=dt.Unique())
    assert (again.id, again.conflict) == (first.id, "skipped")
    assert plain.created


async def test_concurrent_submits_get_one_job(make_app: MakeApp) -> None:
    """Not even in two processes can both be first."""
    apps = [make_app(), make_app()]
    for one in apps:
        await one.open()
    unique = dt.Unique(within="1h", on_conflict="skip")
    jobs = await asyncio.gather(
        *(apps[n % 2].submit("work", n=1, unique=unique, delay="1h") for n in range(10))
    )
    assert len({job.id for job in jobs}) == 1
    assert sorted(job.created for job in jobs) == [False] * 9 + [True]


async def test_in_bulk_the_key_decides(app: dt.App) -> None:
    report = report_task(app, unique=True)
    await app.open()
    first = await report.submit(customer="c1", delay="1h")
    new = [dt.NewJob("report", {"customer": name}, delay="1h") for name in ("c1", "c2", "c2")]
    known, fresh, again = await app.submit_many(new)
    assert (known.id, known.conflict, fresh.conflict) == (first.id, "skipped", None)
    assert (again.id, again.conflict) == (fresh.id, "skipped")


async def test_in_bulk_other_rules_are_refused(client: dt.App) -> None:
    report_task(client, unique=dt.Unique(within="1h"))
    with pytest.raises(dt.InvalidInput, match=r"unique.*by itself"):
        await client.submit_many([dt.NewJob("report", {"customer": "c1"})])
    with pytest.raises(dt.InvalidInput, match="unique"):
        await client.submit_many([dt.NewJob("work", unique_key="k", on_conflict="replace")])
    assert await client.jobs() == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"unique": "customer"}, "unique"),
        ({"unique": 1}, "unique"),
        ({"on_conflict": "replace"}, "on_conflict"),
        ({"unique_key": "k", "on_conflict": "overwrite"}, "unique.on_conflict"),
        ({"unique_key": "k", "unique": dt.Unique(by=["customer"])}, "unique.by"),
        ({"unique": dt.Unique(by=["custmer"])}, "unique.by"),
    ],
)
async def test_invalid_unique_options_are_refused(
    client: dt.App, options: dict[str, Any], field: str
) -> None:
    report = report_task(client)
    with pytest.raises(dt.InvalidInput) as refused:
        await report.submit(customer="c1", **options)
    assert refused.value.field == field
    assert await client.jobs() == []


@pytest.mark.parametrize(
    ("unique", "text"),
    [
        (dt.Unique(by=["custmer"]), r"unique\.by.*did you mean 'customer'"),
        ("customer", "not a Unique"),
        (1, "not a Unique"),
    ],
)
def test_a_wrong_registration_is_refused_at_once(memory_app: dt.App, unique: Any, text: str) -> None:
    with pytest.raises(dt.InvalidInput, match=text):
        report_task(memory_app, unique=unique)
    assert memory_app.tasks == {}


def test_unique_keys_distinguish_arguments_only() -> None:
    keys = [
        unique_key("t", None, {"a": 1, "b": {"x": 1, "y": 2}}),
        unique_key("t", None, {"b": {"y": 2, "x": 1}, "a": 1}),
        unique_key("t", None, {"a": "1", "b": {"x": 1, "y": 2}}),
        unique_key("t", ("a",), {"a": 1, "b": 2}),
        unique_key("t", ("a",), {"a": 1, "b": 3}),
        unique_key("t", ("a",), {"a": None}),
        unique_key("t", ("a",), {}),
        unique_key("t", None, {"a": "x" * 1000}),
        unique_key("t", None, {"a": "x" * 1001}),
    ]
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert keys[5] == keys[6]
    assert len(set(keys)) == 6
    assert all(len(key) < 250 for key in keys)


def test_default_unique_rule_is_the_one_of_stores() -> None:
    assert Unique().rule == PLAIN_RULE
