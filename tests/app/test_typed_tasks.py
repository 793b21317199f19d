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
