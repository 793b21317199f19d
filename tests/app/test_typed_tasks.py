"""Typed arguments: errors at submission, and dead letters for payloads that no longer fit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pydantic
import pytest

import duetime as dt
from tests.app.conftest import MakeApp


@dataclass
class Line:
    price: Decimal
    amount: int = 1


class Customer(pydantic.BaseModel):
    name: str


MOMENT = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


async def test_typed_arguments_arrive_with_their_types(app: dt.App) -> None:
    @app.task("invoice")
    async def invoice(id: UUID, lines: list[Line], customer: Customer, moment: datetime) -> dict[str, Any]:
        assert (type(lines[0]), type(customer), moment) == (Line, Customer, MOMENT)
        return {"total": sum(line.price * line.amount for line in lines), "to": customer}

    async with app.running():
        job = await invoice.submit(
            id=UUID(int=1), lines=[Line(Decimal("2.50"), 2)], customer=Customer(name="Ada"), moment=MOMENT
        )
        await job.wait("60s")
        assert job.state == "succeeded", job.error
        assert job.result == {"total": "5.00", "to": {"name": "Ada"}}


async def test_every_way_of_submitting_checks_types(client: dt.App) -> None:
    @client.task("invoice")
    async def invoice(month: int, moment: datetime | None = None) -> None: ...

    wrong = {"month": "May"}
    with pytest.raises(dt.InvalidPayload, match="month: expected `int`, got `str`"):
        await invoice.submit(**wrong)
    with pytest.raises(dt.InvalidPayload, match="month"):
        await client.submit("invoice", **wrong)
    with pytest.raises(dt.InvalidPayload, match="month"):
        await client.submit_many([dt.NewJob("invoice", {"month": 1}), dt.NewJob("invoice", wrong)])
    with pytest.raises(dt.InvalidPayload, match="month"):
        await client.schedule("monthly", invoice, dt.Every("1h"), payload=wrong)
    with pytest.raises(dt.InvalidPayload, match=r"moment: .* has no time zone"):
        await invoice.submit(month=1, moment=MOMENT.replace(tzinfo=None))
    assert await client.jobs() == []


async def test_every_way_of_submitting_refuses_what_would_arrive_changed(client: dt.App) -> None:
    @client.task("plain")
    async def plain(when, note=None): ...  # type: ignore[no-untyped-def]  # that is the case under test

    @client.task("open")
    async def open_ended(**options: Any) -> None: ...

    every = dt.Every("1h")
    given, json = {"when": MOMENT}, {"when": MOMENT.isoformat()}
    annotate = r"when: is a datetime, which arrives as text: annotate the parameter \(when: datetime\)"
    give = r"when: is a datetime, which arrives as text: give value\.isoformat\(\)"
    jobs = [dt.NewJob("plain", json), dt.NewJob("plain", given)]
    await client.schedule("hourly", plain, every, payload=json)
    for call, message in (
        (lambda: plain.submit(MOMENT), annotate),
        (lambda: plain.submit(when=MOMENT.replace(tzinfo=None), delay="1h"), annotate),
        (lambda: client.submit(plain, **given), annotate),
        (lambda: client.submit("plain", **given), annotate),
        (lambda: client.submit_many(jobs), rf"jobs\[1\]\.{annotate}"),
        (lambda: client.schedule("daily", plain, every, payload=given), annotate),
        (lambda: client.schedules.edit("hourly", {"payload": given}), annotate),
        (lambda: open_ended.submit(**given), give),
        (lambda: client.submit("unknown", **given), rf"payload\.{give}"),
        (lambda: client.submit_many([dt.NewJob("unknown", given)]), rf"jobs\[0\]\.payload\.{give}"),
        (lambda: client.schedule("daily", "unknown", every, payload=given), rf"payload\.{give}"),
    ):
        with pytest.raises(dt.InvalidPayload, match=message):
            await call()
    assert await client.jobs() == []
    assert [one.name for one in await client.schedules()] == ["hourly"]


async def test_a_running_task_is_refused_what_would_arrive_changed(app: dt.App) -> None:
    refused: list[str] = []

    @app.task("plain")
    async def plain(value): ...  # type: ignore[no-untyped-def]  # that is the case under test

    @app.task("outer")
    async def outer(ctx: dt.Context) -> None:
        for call in (lambda: plain.submit(value={3: "x"}), lambda: ctx.checkpoint({"at": MOMENT})):
            try:
                await call()
            except dt.InvalidPayload as problem:
                refused.append(str(problem))

    async with app.running():
        await (await outer.submit()).wait("60s")
    assert [one.partition(",")[0] for one in refused] == [
        "value: has keys of type int",
        "checkpoint.at: is a datetime",
    ]


async def test_payload_that_no_longer_fits_makes_a_dead_letter(app: dt.App, make_app: MakeApp) -> None:
    """The code changed between submit and run: no retries are wasted, the job is kept with a clear error."""
    old, ran = make_app(), []

    @old.task("invoice")
    async def invoice(month: str) -> None: ...

    @app.task("invoice", retry=dt.Retry(max_attempts=5, first_delay="1h"))
    async def newer(month: int) -> None:
        ran.append(month)

    await old.open()
    job = await invoice.submit(month="May")
    async with app.running():
        await (job := await app.get_job(job.id)).wait("60s")
        assert (job.state, job.attempt, ran) == ("dead", 1, [])
        assert job.error is not None
        assert "month: expected `int`, got `str`" in job.error
        assert job.payload == {"month": "May"}


async def test_an_older_payload_is_upgraded(app: dt.App, make_app: MakeApp) -> None:
    old = make_app()

    @old.task("invoice")
    async def invoice(month: str) -> None: ...

    def upgrade(version: int, payload: dict[str, Any]) -> dict[str, Any]:
        return {"month": ["Jan", "Feb"].index(payload["month"]) + 1} if version == 1 else payload

    @app.task("invoice", version=2, upgrade=upgrade)
    async def newer(month: int) -> int:
        return month

    await old.open()
    stored = await invoice.submit(month="Feb")
    async with app.running():
        for job, month in ((await app.get_job(stored.id), 2), (await newer.submit(month=7), 7)):
            await job.wait("60s")
            assert (job.state, job.result) == ("succeeded", month), job.error


async def test_a_payload_of_newer_code_is_kept(app: dt.App, make_app: MakeApp) -> None:
    newer = make_app()

    @newer.task("invoice", version=3)
    async def invoice(month: int) -> None: ...

    @app.task("invoice")
    async def work(month: int) -> None: ...

    await newer.open()
    stored = await invoice.submit(month=1)
    async with app.running():
        job = await app.get_job(stored.id)
        await job.wait("60s")
        assert job.state == "dead"
        assert job.error is not None
        assert "newer code stored this as version 3" in job.error
