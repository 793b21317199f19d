"""Submitting one job: options are stored exactly, and errors name the field and what to do."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import duetime as dt
from tests.app.conftest import MakeApp

SOON = datetime(2031, 5, 1, 9, 30, tzinfo=UTC)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def strict(client: dt.App) -> dt.Task[..., Any]:
    @client.task("strict")
    async def strict(customer: str, month: str = "now") -> None: ...

    return strict


async def test_options_of_submit_are_stored(app: dt.App) -> None:
    await app.open()
    job = await app.submit(
        "invoice.send",
        customer="Ünï",
        at=SOON,
        priority=8,
        queue="billing",
        unique_key="k",
        owner="ann",
        labels={"team": "a"},
    )
    assert job.created
    await job.refresh()
    assert (job.task, job.payload, job.queue, job.priority) == (
        "invoice.send",
        {"customer": "Ünï"},
        "billing",
        8,
    )
    assert (job.fire_time, job.due_at, job.state, job.attempt) == (SOON, SOON, dt.State.PENDING, 0)
    assert (job.labels, job.record.owner, job.started_at, job.finished_at) == (
        {"team": "a"},
        "ann",
        None,
        None,
    )
    assert (await app.get_job(str(job.id))).id == job.id


async def test_an_instant_is_the_same_in_every_offset(app: dt.App) -> None:
    await app.open()
    elsewhere = SOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    job = await (await app.submit("work", at=elsewhere)).refresh()
    assert job.fire_time == SOON
    assert job.fire_time.tzinfo is UTC


async def test_a_delay_counts_from_now(app: dt.App) -> None:
    await app.open()
    before = datetime.now(UTC)
    job = await (await app.submit("work", delay="1h30m")).refresh()
    counted_from = job.due_at - timedelta(minutes=90)
    assert before - timedelta(seconds=1) < counted_from < datetime.now(UTC) + timedelta(seconds=1)


async def test_an_instant_in_the_past_runs_now(app: dt.App) -> None:

    @app.task("work")
    async def work(ctx: dt.Context) -> str:
        return ctx.fire_time.isoformat()

    async with app.running():
        job = await (await work.submit(at=datetime(2001, 1, 1, tzinfo=UTC))).wait("60s")
    assert job.result == "2001-01-01T00:00:00+00:00"


async def test_a_unique_key_is_held_by_one_live_job(app: dt.App) -> None:
    @app.task("work")
    async def work(number: int) -> int:
        return number

    await app.open()
    first = await work.submit(number=1, unique_key="only")
    second = await work.submit(number=2, unique_key="only")
    assert (second.id, first.created, second.created) == (first.id, True, False)
    async with app.running():
        await first.wait("60s")
    third = await work.submit(number=3, unique_key="only")
    assert third.created
    assert third.id != first.id


async def test_call_options_take_precedence_over_task_defaults(app: dt.App) -> None:
    @app.task("work", queue="slow", priority=2)
    async def work() -> None: ...

    await app.open()
    plain = await (await work.submit()).refresh()
    special = await (await work.submit(queue="fast", priority=9)).refresh()
    assert (plain.queue, plain.priority, special.queue, special.priority) == ("slow", 2, "fast", 9)


async def test_every_json_value_comes_back_as_it_was(app: dt.App) -> None:
    value = {
        "": None,
        "a": [1, -1.5, 1e308, True, "𝄞\n\\u0000"],
        "deep": nested(28),
        "big": 2**80,
        "empty": {},
    }
    await app.open()
    job = await (await app.submit("work", value=value)).refresh()
    assert job.payload == {"value": value}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"at": datetime(2030, 1, 1)}, "at"),
        ({"at": "2030-01-01T00:00:00Z"}, "at"),
        ({"at": datetime(9999, 6, 1, tzinfo=UTC)}, "at"),
        ({"at": datetime(1969, 1, 1, tzinfo=UTC)}, "at"),
        ({"delay": "-5m"}, "delay"),
        ({"delay": timedelta(seconds=-1)}, "delay"),
        ({"delay": 5}, "delay"),
        ({"delay": "5 apples"}, "delay"),
        ({"delay": "11000d"}, "delay"),
        ({"delay": "5m", "at": SOON}, "delay"),
        ({"priority": 10}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": "5"}, "priority"),
        ({"priority": 5.0}, "priority"),
        ({"queue": ""}, "queue"),
        ({"queue": "*"}, "queue"),
        ({"queue": 3}, "queue"),
        ({"unique_key": ""}, "unique_key"),
        ({"unique_key": "x" * 513}, "unique_key"),
        ({"unique_key": "a\0b"}, "unique_key"),
        ({"timeout": "0s"}, "timeout"),
        ({"retry": 3}, "retry"),
        ({"delivery": "exactly_once"}, "delivery"),
        ({"delivery": ""}, "delivery"),
        ({"owner": " "}, "owner"),
        ({"labels": {"n": 1}}, "labels"),
        ({"labels": ["a"]}, "labels"),
    ],
)
async def test_wrong_options_are_refused_by_name(client: dt.App, options: dict[str, Any], field: str) -> None:
    with pytest.raises(dt.InvalidInput) as refused:
        await client.submit("work", **options)
    assert refused.value.field == field
    assert await client.jobs() == []


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        pytest.param(math.nan, id="nan"),
        pytest.param([math.inf], id="infinity"),
        pytest.param({"a": {"b": -math.inf}}, id="inner infinity"),
        pytest.param({math.nan}, id="nan in a set"),
        pytest.param("a\0b", id="nul"),
        pytest.param({"a\0b": 1}, id="nul in a key"),
        pytest.param("\ud800", id="lone surrogate"),
        pytest.param({"\udfff": 1}, id="lone surrogate in a key"),
        pytest.param(nested(40), id="too deep"),
        pytest.param(nested(100_000), id="far too deep"),
        pytest.param(3j, id="complex"),
        pytest.param({(1, 2): 3}, id="tuple as key"),
    ],
)
async def test_payloads_that_json_or_a_store_cannot_hold_are_refused(client: dt.App, value: Any) -> None:
    with pytest.raises(dt.InvalidPayload):
        await client.submit("work", value=value)
    assert await client.jobs() == []


async def test_a_payload_over_the_limit_is_refused(client: dt.App) -> None:
    await client.submit("work", text="x" * (256 * 1024 - 20))
    with pytest.raises(dt.PayloadTooLarge, match="262,144"):
        await client.submit("work", text="x" * 256 * 1024)
    assert len(await client.jobs()) == 1


async def test_a_payload_cannot_contain_itself(client: dt.App) -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(dt.InvalidPayload):
        await client.submit("work", value=circle)


async def test_unknown_argument_error_suggests_a_known_one(strict: dt.Task[..., Any]) -> None:
    with pytest.raises(dt.UnknownOption, match="did you mean 'customer'") as refused:
        await strict.submit(custmer="c1", customer="c1")
    assert refused.value.field == "custmer"
    with pytest.raises(dt.UnknownOption, match="it takes customer, month"):
        await strict.submit(customer="c1", zzz=1)


async def test_mistyped_option_error_suggests_the_option(strict: dt.Task[..., Any]) -> None:
    with pytest.raises(dt.UnknownOption, match="did you mean 'priority'"):
        await strict.submit(customer="c1", prioritty=3)


async def test_a_missing_argument_is_named(client: dt.App, strict: dt.Task[..., Any]) -> None:
    with pytest.raises(dt.InvalidPayload, match=r"customer.*strict"):
        await strict.submit(month="May")
    with pytest.raises(dt.InvalidPayload, match="customer"):
        await client.submit("strict")


@pytest.mark.parametrize("task", [None, 3, print, ["a"]])
async def test_submitting_something_other_than_a_task_is_refused(client: dt.App, task: Any) -> None:
    with pytest.raises(dt.TaskNotFound, match=r"@app\.task"):
        await client.submit(task)


async def test_a_task_registered_elsewhere_is_submitted_by_name(app: dt.App) -> None:
    await app.open()
    job = await (await app.submit("known.elsewhere", anything=1)).refresh()
    assert (job.task, job.queue, job.priority) == ("known.elsewhere", "default", 5)


async def test_jobs_lists_the_newest_first_and_filters(app: dt.App) -> None:
    await app.open()
    early = await app.submit("work", at=SOON, queue="a")
    late = await app.submit("work", at=SOON + timedelta(days=1), queue="b")
    assert [job.id for job in await app.jobs()] == [late.id, early.id]
    assert [job.id for job in await app.jobs(queue="a")] == [early.id]
    assert [job.id for job in await app.jobs(limit=1)] == [late.id]
    assert await app.jobs(state="running") == []
    with pytest.raises(dt.InvalidInput, match="state"):
        await app.jobs(state="sleeping")


@pytest.mark.parametrize("limit", [0, -1, "ten", True, 2.5])
async def test_a_limit_must_be_a_count(client: dt.App, limit: Any) -> None:
    with pytest.raises(dt.InvalidInput, match="limit"):
        await client.jobs(limit=limit)
    with pytest.raises(dt.InvalidInput, match="limit"):
        await client.schedules(limit=limit)


async def test_tenants_do_not_see_each_other(make_app: MakeApp) -> None:
    ours, theirs = make_app(tenant="ours"), make_app(tenant="theirs")
    await ours.open()
    await theirs.open()
    job = await ours.submit("work", unique_key="k", delay="1h")
    assert (await theirs.submit("work", unique_key="k", delay="1h")).id != job.id
    with pytest.raises(dt.JobNotFound):
        await theirs.get_job(job.id)
    with pytest.raises(dt.JobNotFound):
        await theirs.cancel_job(job.id)
    assert [found.id for found in await ours.jobs()] == [job.id]


@pytest.mark.parametrize("job_id", ["", "nonsense", None, 5, "01935c2e-7b3a-7000-8000-000000000000"])
async def test_unknown_job_ids_are_refused(client: dt.App, job_id: Any) -> None:
    with pytest.raises(dt.JobNotFound):
        await client.get_job(job_id)
