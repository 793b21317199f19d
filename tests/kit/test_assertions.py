"""Assertions about submitted jobs: what matches, what does not, and the message on failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

import duetime as dt
from duetime import testing
from duetime.errors import ConfigError, TaskNotFound, UnknownOption

DAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


@dataclass
class Address:
    street: str
    number: int


@pytest.fixture
def shop(app: dt.App) -> Iterator[dt.App]:
    @app.task("invoice.send", queue="billing")
    async def send(customer: str, month: str = "2026-11", copies: int = 1) -> None: ...

    @app.task("parcel.ship")
    async def ship(to: Address, on: datetime, parcel: UUID | None = None) -> None: ...

    with testing.recording(app, start="2026-11-16T08:00Z"):
        yield app


def test_submitted_returns_jobs_with_arguments_and_options(shop: dt.App) -> None:
    shop.sync.submit(
        "invoice.send", customer="c1", delay="15m", priority=8, owner="ann", labels={"kind": "bulk"}
    )
    shop.sync.submit("invoice.send", customer="c2", unique_key="c2")
    shop.sync.submit("invoice.send", customer="c2", unique_key="c2")
    first, second = testing.submitted(shop)
    assert (first.task, first.arguments) == (
        "invoice.send",
        {"customer": "c1", "month": "2026-11", "copies": 1},
    )
    assert (first.queue, first.priority, first.owner, first.labels) == ("billing", 8, "ann", {"kind": "bulk"})
    assert (first.delay, first.at) == (timedelta(minutes=15), datetime(2026, 11, 16, 8, 15, tzinfo=UTC))
    assert (first.state, second.unique_key, second.delay) == (dt.State.PENDING, "c2", timedelta(0))
    assert testing.submitted(shop, "parcel.ship") == []
    third, fourth = (
        shop.sync.submit("invoice.send", customer="c3", unique=dt.Unique(within="1h")) for _ in range(2)
    )
    assert third.id == fourth.id
    assert [job.id for job in testing.submitted(shop)][2:] == [third.id]


def test_assert_submitted_matches_given_arguments_and_options(shop: dt.App) -> None:
    shop.sync.submit("invoice.send", customer="c1", delay="15m")
    shop.sync.submit("invoice.send", customer="c1", month="2026-12", at=DAY, queue="later")
    found = testing.assert_submitted(shop, "invoice.send", customer="c1", times=2)
    assert [job.queue for job in found] == ["billing", "later"]
    testing.assert_submitted(shop, "invoice.send", month="2026-11", delay="15m", times=1)
    testing.assert_submitted(shop, "invoice.send", customer="c1", queue="later", at=DAY, times=1)
    testing.assert_submitted(shop, "invoice.send", {"copies": 1}, times=2)
    testing.assert_not_submitted(shop, "invoice.send", customer="c9")
    testing.assert_not_submitted(shop, "parcel.ship")


def test_typed_values_are_compared_as_stored(shop: dt.App) -> None:
    parcel = UUID(int=7)
    shop.sync.submit("parcel.ship", to=Address("Elm", 5), on=DAY, parcel=parcel)
    testing.assert_submitted(shop, "parcel.ship", to=Address("Elm", 5), on=DAY, parcel=parcel, times=1)
    testing.assert_not_submitted(shop, "parcel.ship", to=Address("Elm", 6))


def test_failure_message_shows_the_nearest_jobs(shop: dt.App) -> None:
    shop.sync.submit("invoice.send", customer="c2")
    shop.sync.submit("invoice.send", customer="c3", month="2026-12")
    shop.sync.submit("parcel.ship", to=Address("Elm", 5), on=DAY)
    with pytest.raises(AssertionError) as raised:
        testing.assert_submitted(shop, "invoice.send", customer="c1", month="2026-11", delay="15m")
    assert str(raised.value) == (
        "expected at least one job: invoice.send(customer='c1', month='2026-11', delay=15m)\n"
        "found 0 among 2 of this task and 3 submitted jobs in total\n"
        "  invoice.send(customer='c2', month='2026-11', copies=1) pending queue=billing delay=0s\n"
        "    - customer = 'c1'\n"
        "    + customer = 'c2'\n"
        "    - delay = 15m\n"
        "    + delay = 0s\n"
        "  invoice.send(customer='c3', month='2026-12', copies=1) pending queue=billing delay=0s\n"
        "    - customer = 'c1'\n"
        "    + customer = 'c3'\n"
        "    - month = '2026-11'\n"
        "    + month = '2026-12'\n"
        "    - delay = 15m\n"
        "    + delay = 0s\n"
        "other tasks: parcel.ship (1)"
    )


def test_wrong_number_of_jobs_fails(shop: dt.App) -> None:
    for _ in range(7):
        shop.sync.submit("invoice.send", customer="c1")
    with pytest.raises(
        AssertionError, match=r"expected 1 job: (.|\n)*found 7 among 7(.|\n)*\.\.\. and 2 more"
    ):
        testing.assert_submitted(shop, "invoice.send", customer="c1", times=1)
    with pytest.raises(AssertionError, match="expected no job: "):
        testing.assert_not_submitted(shop, "invoice.send")
    with pytest.raises(AssertionError, match="expected no submitted job"):
        testing.assert_not_submitted(shop)
    with pytest.raises(AssertionError, match="expected 8 jobs"):
        testing.assert_submitted(shop, "invoice.send", times=8)


def test_misspelled_names_are_refused(shop: dt.App) -> None:
    with pytest.raises(TaskNotFound, match=r"did you mean 'invoice\.send'"):
        testing.assert_not_submitted(shop, "invoice.sent")
    with pytest.raises(UnknownOption, match="its arguments are: copies, customer, month"):
        testing.assert_not_submitted(shop, "invoice.send", client="c1")
    testing.assert_not_submitted(shop, "of.another.service", anything=1)


def test_fires_of_schedules_are_not_submissions(app: dt.App) -> None:
    @app.task("tick")
    async def tick() -> None: ...

    async def scenario(time: testing.VirtualTime) -> None:
        await app.schedule("hourly", tick, dt.Every("1h"))
        await time.advance("3h")
        assert len(await app.jobs(schedule="hourly")) >= 3
        testing.assert_not_submitted(app)

    testing.run(app, scenario)


def test_app_that_is_not_under_test_is_refused(app: dt.App) -> None:
    with pytest.raises(ConfigError, match="recording"):
        testing.submitted(app)
