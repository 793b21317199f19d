"""Why, over HTTP: the same sentences as in the library (tests/app/test_why.py has them all)."""

from __future__ import annotations

from tests.api.conftest import TASK, Api, refused

MISSING = "01935c2e-7b3a-7000-8000-000000000000"


async def test_why_explains_a_waiting_job(api: Api) -> None:
    job_id = await api.submit(queue="billing")
    await api.post("/queues/billing/pause", {"note": "database moves house"})
    why = (await api.get(f"/jobs/{job_id}/why")).json()
    assert why["code"] == "queue_paused"
    assert why["why"].startswith("waits: queue billing has been paused since ")
    assert why["why"].endswith(" UTC (database moves house)")
    assert why["since"] == (await api.get("/queues")).json()["items"][0]["paused_at"]
    assert why["remedy"] == "resume the queue"


async def test_why_shows_times_in_the_wanted_time_zone(api: Api) -> None:
    job_id = await api.submit(delay="1h")
    assert " UTC" in (await api.get(f"/jobs/{job_id}/why")).json()["why"]
    assert " Asia/Tokyo" in (await api.get(f"/jobs/{job_id}/why?tz=Asia/Tokyo")).json()["why"]
    refused(await api.get(f"/jobs/{job_id}/why?tz=Mars/Base"), 422, "zone_unknown", "tz")
    when = {"cron": "0 9 * * *", "tz": "Europe/Berlin"}
    await api.post("/schedules", {"name": "s", "when": when, "target": TASK})
    assert " Europe/Berlin" in (await api.get("/schedules/s/why")).json()["why"]
    assert " Asia/Tokyo" in (await api.get("/schedules/s/why?tz=Asia/Tokyo")).json()["why"]


async def test_why_explains_a_paused_schedule(api: Api) -> None:
    made = (await api.post("/schedules", {"name": "s", "when": {"every": "1h"}, "target": TASK})).json()
    assert (await api.get(f"/schedules/{made['id']}/why")).json()["code"] == "no_planner"
    await api.post("/schedules/s/pause", {"note": "too loud"})
    why = (await api.get("/schedules/s/why")).json()
    assert (why["code"], why["why"].endswith("(too loud)"), why["remedy"]) == ("paused", True, "resume it")


async def test_why_of_unknown_jobs_and_schedules_is_not_found(api: Api) -> None:
    refused(await api.get(f"/jobs/{MISSING}/why"), 404, "job_not_found")
    refused(await api.get("/schedules/unknown/why"), 404, "schedule_not_found")
