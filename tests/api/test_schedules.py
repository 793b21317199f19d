"""Schedules over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

import duetime as dt
from duetime.model.instant import SECOND
from duetime.model.schedule import ScheduleFilter, plan_fires
from tests.api.conftest import TASK, Api, refused

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "when": {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
    "target": TASK,
    "payload": {"n": 1},
}


async def create(api: Api, **change: Any) -> dict[str, Any]:
    done = await api.post("/schedules", {**NIGHTLY, **change})
    assert done.status_code == 201, done.text
    made: dict[str, Any] = done.json()
    return made


async def test_a_schedule_is_found_by_id_and_by_name(api: Api) -> None:
    made = await create(
        api,
        overlap="skip",
        missed={"policy": "all", "within": "6h", "max": 3},
        jitter="5s",
        max_runs=9,
        timeout="1m",
    )
    by_id, by_name = await api.get(f"/schedules/{made['id']}"), await api.get("/schedules/nightly")
    assert by_id.json() == by_name.json() == made
    assert by_id.headers["etag"] == '"1"'
    assert (made["overlap"], made["missed"], made["jitter"]) == (
        "skip",
        {"policy": "all", "within": "6h", "max": 3},
        "5s",
    )
    assert (made["max_runs"], made["timeout"], made["when"]["tz"]) == (9, "1m", "Europe/Berlin")
    refused(await api.get("/schedules/01935c2e-7b3a-7000-8000-000000000000"), 404, "schedule_not_found")
    refused(await api.get("/schedules/daily"), 404, "schedule_not_found")


async def test_identical_schedule_is_accepted_and_a_different_one_is_refused(api: Api) -> None:
    made = await create(api)
    again = await api.post("/schedules", NIGHTLY)
    assert (again.status_code, again.json()["id"], again.json()["version"]) == (200, made["id"], 1)
    refused(await api.post("/schedules", {**NIGHTLY, "payload": {}}), 409, "schedule_exists")


async def test_edit_changes_given_fields_and_null_removes(api: Api) -> None:
    made = await create(
        api, timeout="1m", retry={"max_attempts": 2}, end_at="2040-01-01T00:00:00Z", owner="me", priority=7
    )
    change = {
        "when": {"every": "10m"},
        "timeout": None,
        "end_at": None,
        "labels": {"a": "b"},
        "payload": {"n": 2},
    }
    done = await api.ask("PATCH", "/schedules/nightly", change)
    assert done.status_code == 200, done.text
    after = done.json()
    assert (after["when"], after["timeout"], after["end_at"], after["labels"]) == (
        {"every": "10m"},
        None,
        None,
        {"a": "b"},
    )
    assert (after["retry"]["max_attempts"], after["owner"], after["priority"], after["payload"]) == (
        2,
        "me",
        7,
        {"n": 2},
    )
    assert (after["id"], after["version"], done.headers["etag"]) == (made["id"], 2, '"2"')
    refused(await api.ask("PATCH", "/schedules/nightly", {}), 422, "input_invalid", "body")
    refused(await api.ask("PATCH", "/schedules/nightly", {"payload": 5}), 409, "conflict")
    refused(await api.ask("PATCH", "/schedules/nightly", {"name": "other"}), 422, "input_invalid", "name")
    refused(
        await api.ask("PATCH", "/schedules/nightly", {"when": {"cron": "0 0 30 2 *"}}),
        422,
        "when_never_fires",
    )


@pytest.mark.parametrize("value", ["", '"', '""', "3", '"x"', '"1234567890"', 'w/"1"', 'W/"1", "2"'])
async def test_malformed_if_match_is_refused(api: Api, value: str) -> None:
    await create(api)
    refused(await api.ask("DELETE", "/schedules/nightly", if_match=value), 422, "input_invalid", "If-Match")


async def test_if_match_accepts_an_etag_that_a_proxy_made_weak(api: Api) -> None:
    await create(api)
    changed = await api.ask("PATCH", "/schedules/nightly", {"priority": 1}, if_match='W/"1"')
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    refused(await api.ask("DELETE", "/schedules/nightly", if_match='W/"1"'), 412, "version_conflict")


async def test_stale_if_match_is_refused(api: Api) -> None:
    await create(api)
    assert (await api.ask("PATCH", "/schedules/nightly", {"priority": 1}, if_match='"1"')).status_code == 200
    refused(
        await api.ask("PATCH", "/schedules/nightly", {"priority": 2}, if_match='"1"'), 412, "version_conflict"
    )
    refused(await api.ask("DELETE", "/schedules/nightly", if_match='"1"'), 412, "version_conflict")
    stale = await api.ask("PATCH", "/schedules/nightly", {"end_at": "AAA"}, if_match='"1"')
    refused(stale, 422, "input_invalid", "end_at")
    for odd in ("1", "W/1", '"x"', '""'):
        refused(
            await api.ask("PATCH", "/schedules/nightly", {"priority": 2}, if_match=odd),
            422,
            "input_invalid",
            "If-Match",
        )
    assert (await api.get("/schedules/nightly")).json()["priority"] == 1
    assert (await api.ask("DELETE", "/schedules/nightly", if_match='"2"')).status_code == 204
    refused(await api.get("/schedules/nightly"), 404, "schedule_not_found")


async def test_fires_planned_ahead_are_shown_as_future(api: Api) -> None:
    made = await create(api, max_runs=3)
    [stored] = await api.app.store.list_schedules(ScheduleFilter("default"), 9, None)
    now = await api.app.now()
    assert await api.app.store.fire([plan_fires(stored, now, now + 90 * 86_400 * SECOND)]) == 1
    shown = (await api.get("/schedules/nightly")).json()
    [listed] = (await api.get("/schedules")).json()["items"]
    told = ("next_fire_time", "last_fire_time", "runs")
    assert [[one[field] for field in told] for one in (shown, listed)] == [
        [made["next_fire_time"], None, 0]
    ] * 2
    assert len((await api.get("/schedules/nightly/preview")).json()["fires"]) == 3


async def test_schedule_is_created_paused_in_one_step(api: Api) -> None:
    made = await create(api, paused=True)
    assert (made["paused"], made["version"], made["next_fire_time"]) == (True, 1, None)
    versions = (await api.get("/schedules/nightly/versions")).json()["items"]
    assert [(one["change"], one["paused"]) for one in versions] == [("created", True)]


async def test_schedule_is_paused_and_resumed(api: Api) -> None:
    await create(api, paused=True)
    assert (await api.get("/schedules/nightly")).json()["next_fire_time"] is None
    assert not (await api.post("/schedules/nightly/resume")).json()["paused"]
    paused = (await api.post("/schedules/nightly/pause", {"note": "moving"})).json()
    assert (paused["paused"], paused["pause_note"]) == (True, "moving")
    assert not (await api.ask("PATCH", "/schedules/nightly", {"paused": False})).json()["paused"]
    assert (await api.post("/schedules/nightly/pause")).json()["pause_note"] is None


async def test_triggered_job_is_listed_with_its_schedule(api: Api) -> None:
    await create(api)
    job = await api.post("/schedules/nightly/trigger")
    assert (job.status_code, job.json()["schedule"], job.json()["payload"]) == (201, "nightly", {"n": 1})
    await api.post("/schedules/nightly/trigger")
    page = (await api.get("/schedules/nightly/jobs?limit=1")).json()
    rest = (await api.get(f"/schedules/nightly/jobs?limit=1&cursor={page['next_cursor']}")).json()
    assert rest["next_cursor"] is None
    assert job.json()["id"] in {page["items"][0]["id"], rest["items"][0]["id"]}


async def test_preview_stays_within_the_schedule(api: Api) -> None:
    await create(
        api,
        when={"cron": "0 9 * * *", "tz": "UTC"},
        start_at="2030-01-01T00:00:00Z",
        end_at="2030-01-03T00:00:00Z",
    )
    assert (await api.get("/schedules/nightly/preview?count=5")).json()["fires"] == [
        "2030-01-01T09:00:00Z",
        "2030-01-02T09:00:00Z",
    ]
    assert (await api.get("/schedules/nightly/preview?count=1&after=2030-01-01T09:00:00Z")).json()[
        "fires"
    ] == ["2030-01-02T09:00:00Z"]
    refused(await api.get("/schedules/nightly/preview?count=0"), 422, "input_invalid", "count")


@pytest.mark.parametrize("number", [0, 3])
async def test_schedules_are_listed_by_name(api: Api, number: int) -> None:
    for name in ["c", "a", "b"][:number]:
        await create(api, name=name)
    first = (await api.get("/schedules?limit=2")).json()
    assert [one["name"] for one in first["items"]] == ["a", "b"][:number]
    if number:
        rest = (await api.get(f"/schedules?limit=2&cursor={first['next_cursor']}")).json()
        assert ([one["name"] for one in rest["items"]], rest["next_cursor"]) == (["c"], None)


async def names(api: Api, query: str) -> list[str]:
    found = await api.get(f"/schedules?{query}")
    assert found.status_code == 200, found.text
    return [one["name"] for one in found.json()["items"]]


async def test_policy_settings_without_effect_are_refused(api: Api) -> None:
    for options, field in (
        ({"retry": {"delays": ["1s"], "first_delay": "9s"}}, "retry.first_delay"),
        ({"retry": {"backoff": "linear", "multiplier": 3}}, "retry.multiplier"),
        ({"missed": {"max": 5}}, "missed.max"),
        ({"missed": {"policy": "skip", "within": "1h"}}, "missed.within"),
    ):
        body = {"name": "s", "when": {"every": "1h"}, "target": {"type": "task", "name": "t"}, **options}
        refused(await api.post("/schedules", body), 422, "input_invalid", field)
    made = await create(api, retry={"delays": ["1s"], "max_attempts": 2}, missed={"policy": "skip"})
    whole = await api.ask("PATCH", "/schedules/nightly", {"retry": made["retry"]})
    assert whole.status_code == 200


async def test_schedules_are_filtered(api: Api) -> None:
    await create(api, name="Nightly report", owner="ann", queue="slow", labels={"team": "billing"})
    await create(api, name="hourly report", paused=True, labels={"team": "web:shop"})
    await create(
        api,
        name="call",
        target={"type": "http", "url": "https://a.example/run"},
        labels={"env:team": "web:shop"},
    )
    assert await names(api, "text=REPORT") == ["Nightly report", "hourly report"]
    assert await names(api, "paused=true") == ["hourly report"]
    assert await names(api, "paused=false&text=report") == ["Nightly report"]
    assert (
        await names(api, "owner=ann")
        == await names(api, "queue=slow")
        == await names(api, "label=team:billing")
        == ["Nightly report"]
    )
    assert await names(api, "label=team:web:shop") == ["hourly report"]
    assert await names(api, "label=env%5C:team:web:shop") == ["call"]
    assert await names(api, "label=env:team:web:shop") == []
    assert await names(api, "label=team:") == []
    assert await names(api, "target=@http") == ["call"]
    assert await names(api, "target=invoice.send") == ["Nightly report", "hourly report"]
    first = (await api.get("/schedules?text=report&limit=1")).json()
    rest = await api.get(f"/schedules?text=report&limit=1&cursor={first['next_cursor']}")
    assert [one["name"] for one in rest.json()["items"]] == ["hourly report"]
    refused(
        await api.get(f"/schedules?text=call&limit=1&cursor={first['next_cursor']}"), 400, "cursor_invalid"
    )
    for odd, field in (
        ("label=team", "label"),
        ("paused=perhaps", "paused"),
        ("owner=@x", "owner"),
        ("name=x", "name"),
    ):
        refused(await api.get(f"/schedules?{odd}"), 422, "input_invalid", field)


async def test_edit_without_an_effect_makes_no_version(api: Api) -> None:
    made = await create(api, labels={"a": "1", "b": "2"}, timeout="60s", payload={"x": 1, "y": [2]})
    same = {
        "payload": {"y": [2], "x": 1},
        "labels": {"b": "2", "a": "1"},
        "timeout": "1m",
        "when": made["when"],
        "paused": False,
    }
    done = await api.ask("PATCH", "/schedules/nightly", same, if_match='"1"')
    assert (done.status_code, done.json()) == (200, made)
    paused = (await api.post("/schedules/nightly/pause", {"note": "moving"})).json()
    assert (await api.post("/schedules/nightly/pause", {"note": "moving"})).json() == paused
    assert (await api.post("/schedules/nightly/pause", {"note": "moved"})).json()["version"] == paused[
        "version"
    ] + 1


async def test_edit_updates_values_derived_from_the_task(api: Api) -> None:
    """Another argument means another limit key, and the payload has the version of the task."""

    @api.app.task("mail.send", limit=dt.Limit(1, per="customer"), version=3)
    async def send(customer: str) -> None: ...

    await create(api, target={"type": "task", "name": "mail.send"}, payload={"customer": "a"})
    before = (await api.app.schedules.find("nightly")).draft
    await api.ask("PATCH", "/schedules/nightly", {"payload": {"customer": "b"}})
    after = (await api.app.schedules.find("nightly")).draft
    other = {
        **NIGHTLY,
        "name": "other",
        "target": {"type": "task", "name": "mail.send"},
        "payload": {"customer": "b"},
    }
    await api.post("/schedules", other)
    declared = (await api.app.schedules.find("other")).draft
    assert before.limit_key != after.limit_key == declared.limit_key
    assert after.policies == declared.policies
    await api.ask("PATCH", "/schedules/nightly", {"target": TASK})
    assert (await api.app.schedules.find("nightly")).draft.limit_key is None


async def test_removal_by_version_detects_a_concurrent_edit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another caller edits between the read and the removal."""
    await create(api)
    store, writing = api.app.store, api.app.store.write_schedule

    async def edited_first(*arguments: Any) -> Any:
        monkeypatch.setattr(store, "write_schedule", writing)
        await api.ask("PATCH", "/schedules/nightly", {"priority": 9})
        return await writing(*arguments)

    monkeypatch.setattr(store, "write_schedule", edited_first)
    refused(await api.ask("DELETE", "/schedules/nightly", if_match='"1"'), 412, "version_conflict")
    assert (await api.get("/schedules/nightly")).json()["priority"] == 9
    monkeypatch.setattr(store, "write_schedule", edited_first)
    assert (await api.ask("DELETE", "/schedules/nightly")).status_code == 204
    refused(await api.ask("DELETE", "/schedules/nightly"), 404, "schedule_not_found")
