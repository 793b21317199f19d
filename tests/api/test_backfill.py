"""Backfill over HTTP: bounded, resumable, spread by a rate, and never twice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job, JobFilter
from duetime.model.lease import NodeDraft
from duetime.model.schedule import iso as shown_iso
from duetime.model.schedule import plan_fires
from duetime.store import ClaimRequest, Lane
from duetime.testing.conformance.drafts import put_schedule
from tests.api.conftest import TASK, Api, refused

HOUR = 3_600 * SECOND


def iso(micros: Micros) -> str:
    return str(shown_iso(micros))


async def hourly(api: Api, **more: Any) -> Micros:
    """A schedule of each full hour; answers the last full hour."""
    done = await api.post(
        "/schedules", {"name": "tick", "when": {"every": "1h"}, "target": TASK, "payload": {}, **more}
    )
    assert done.status_code == 201, done.text
    now = await api.app.now()
    return now - now % HOUR


async def fill(api: Api, **body: Any) -> dict[str, Any]:
    done = await api.post("/schedules/tick/backfill", body)
    assert done.status_code == 200, done.text
    answer: dict[str, Any] = done.json()
    return answer


async def jobs(api: Api) -> list[Job]:
    found = await api.app.store.list_jobs(JobFilter("default", schedule="tick"), 10_000)
    return sorted(found, key=lambda job: job.fire_time)


async def test_backfill_continues_at_next_from_and_repeating_adds_nothing(api: Api) -> None:
    last = await hourly(api)
    span = {"from": iso(last - 4 * HOUR), "to": iso(last + 1)}
    first = await fill(api, **span, limit=3)
    assert first == {"added": 3, "existing": 0, "next_from": iso(last - HOUR)}
    assert await fill(api, **span, limit=3) == {"added": 0, "existing": 3, "next_from": iso(last - HOUR)}
    assert await fill(api, **{**span, "from": first["next_from"]}) == {
        "added": 2,
        "existing": 0,
        "next_from": None,
    }
    assert await fill(api, **span) == {"added": 0, "existing": 5, "next_from": None}
    assert [job.fire_time for job in await jobs(api)] == [last - number * HOUR for number in (4, 3, 2, 1, 0)]


async def test_backfill_without_an_end_reaches_now(api: Api) -> None:
    last = await hourly(api)
    assert (await fill(api, **{"from": iso(last - HOUR)}))["added"] == 2


async def test_cancelled_backfilled_fire_is_not_added_again(api: Api) -> None:
    last = await hourly(api)
    await fill(api, **{"from": iso(last)})
    [job] = await jobs(api)
    await api.app.cancel_job(job.id)
    assert await fill(api, **{"from": iso(last)}) == {"added": 0, "existing": 1, "next_from": None}


async def test_backfill_includes_skipped_fires(api: Api) -> None:
    last = await hourly(api, missed={"policy": "skip"})
    schedule, now = await api.app.schedules.find("tick"), last + HOUR // 2
    await put_schedule(api.app.store, schedule.draft, last - 2 * HOUR, None)
    await api.app.store.fire([plan_fires(await api.app.schedules.find("tick"), now, now)])
    assert [job.state for job in await jobs(api)] == ["skipped"] * 3
    assert await fill(api, **{"from": iso(last - 2 * HOUR)}) == {"added": 3, "existing": 0, "next_from": None}
    assert await fill(api, **{"from": iso(last - 2 * HOUR)}) == {"added": 0, "existing": 3, "next_from": None}


async def test_backfill_keeps_its_rate_over_several_calls(api: Api) -> None:
    last = await hourly(api)
    span = {"to": iso(last + 1), "rate": "2/10s"}
    before = await api.app.now()
    await fill(api, **span, **{"from": iso(last - 9 * HOUR)}, limit=4)
    await fill(api, **span, **{"from": iso(last - 5 * HOUR)}, limit=4)
    await fill(api, **span, **{"from": iso(last - 9 * HOUR)})
    due = [job.due_at for job in await jobs(api)]
    assert len(due) == 10
    assert {later - earlier for earlier, later in pairwise(due)} == {5 * SECOND}
    assert before <= due[0] <= await api.app.now()


async def test_backfill_without_a_rate_is_due_now(api: Api) -> None:
    last = await hourly(api)
    await fill(api, **{"from": iso(last - 3 * HOUR)})
    assert len({job.due_at for job in await jobs(api)}) == 1


async def test_backfill_stays_within_start_and_end_of_the_schedule(api: Api) -> None:
    last = await hourly(api, start_at=iso(0))
    done = await api.ask("PATCH", "/schedules/tick", {"start_at": iso(last - 2 * HOUR)})
    assert done.status_code == 200, done.text
    assert (await fill(api, **{"from": iso(last - 5 * HOUR)}))["added"] == 3


async def test_backfilled_fire_is_claimed(api: Api) -> None:
    last = await hourly(api, overlap="queue", queue="slow", priority=7)
    await fill(api, **{"from": iso(last - HOUR)})
    node = await api.app.store.join(NodeDraft("node", ("worker",), "1"), HOUR)
    claimed, _ = await api.app.store.claim(ClaimRequest(node, (Lane("slow", 7, 0),), ("invoice.send",), 5, 0))
    assert [job.fire_time for job in claimed] == [last - HOUR]  # one at a time, the oldest first


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"to": "2990-01-01T00:00:00Z"}, "to"),
        ({"to": "2026-01-01T00:00:00Z"}, "from"),
        ({"from": "2026-01-01"}, "from"),
        ({"from": "2026-01-01T00:00:00"}, "from"),
        ({"rate": "often"}, "rate"),
        ({"rate": ""}, "rate"),
        ({"rate": "0/1s"}, "rate"),
        ({"limit": 1_001}, "limit"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"spacing": "1s"}, "spacing"),
    ],
)
async def test_invalid_backfill_is_refused(api: Api, change: dict[str, Any], field: str) -> None:
    await hourly(api)
    body = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", **change}
    refused(await api.post("/schedules/tick/backfill", body), 422, "input_invalid", field)
    assert await jobs(api) == []


async def test_backfill_of_an_unknown_schedule_is_not_found(api: Api) -> None:
    refused(
        await api.post("/schedules/none/backfill", {"from": "2026-01-01T00:00:00Z"}),
        404,
        "schedule_not_found",
    )
