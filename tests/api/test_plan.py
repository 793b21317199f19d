"""Plans and previews over HTTP. That a plan is what the edit then does is shown in
tests/app/test_planning.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import TASK, Api, refused
from tests.api.test_schedules import NIGHTLY, create

BERLIN = {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"}


async def plan(api: Api, body: dict[str, Any], path: str = "/schedules/nightly/plan") -> dict[str, Any]:
    done = await api.post(path, body)
    assert done.status_code == 200, done.text
    answer: dict[str, Any] = done.json()
    return answer


async def test_plan_changes_nothing(api: Api) -> None:
    made = await create(api, when={"cron": "0 9 * * *"})
    told = await plan(
        api, {"when": {"cron": "0 10 * * *"}, "priority": 9}, "/schedules/nightly/plan?horizon=3d&count=2"
    )
    assert told["version"] == 1
    assert told["diff"] == [
        {
            "field": "when",
            "before": {"cron": "0 9 * * *", "tz": "UTC"},
            "after": {"cron": "0 10 * * *", "tz": "UTC"},
        },
        {"field": "priority", "before": 5, "after": 9},
    ]
    assert told["words"] == {"before": "at 09:00, every day, UTC", "after": "at 10:00, every day, UTC"}
    assert told["counts"]["moved"] + told["counts"]["added"] in (3, 4)
    assert len(told["fires"]["moved"]) == 2
    assert told["fires"]["moved"][0]["from"].endswith("T09:00:00Z")
    assert told["fires"]["moved"][0]["to"].endswith("T10:00:00Z")
    assert (told["jobs_withdrawn"], told["complete"]) == (0, True)
    assert (await api.get("/schedules/nightly")).json() == made


async def test_plan_of_a_new_schedule_lists_its_fires(api: Api) -> None:
    told = await plan(api, {**NIGHTLY, "when": {"every": "1h"}}, "/schedules/plan?horizon=1d")
    assert (told["version"], told["diff"], told["words"]) == (
        None,
        [],
        {"before": None, "after": "every hour"},
    )
    assert (told["counts"], len(told["fires"]["added"])) == (
        {"kept": 0, "added": 24, "withdrawn": 0, "moved": 0},
        20,
    )
    refused(await api.get("/schedules/nightly"), 404, "schedule_not_found")
    paused = await plan(api, {**NIGHTLY, "paused": True}, "/schedules/plan")
    assert (paused["fires"]["added"], paused["warnings"][0]) == (
        [],
        "the schedule is paused: nothing fires until it is resumed",
    )


async def test_plan_of_an_identical_schedule_is_empty(api: Api) -> None:
    await create(api)
    same = await plan(api, NIGHTLY, "/schedules/plan")
    assert (same["version"], same["diff"], same["counts"]["kept"]) == (1, [], 7)
    refused(await api.post("/schedules/plan", {**NIGHTLY, "payload": {}}), 409, "schedule_exists")


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({}, 422, "input_invalid", "body"),
        ({"when": {"cron": "0 0 30 2 *"}}, 422, "when_never_fires", "when.cron"),
        ({"when": {"at": "2001-01-01T00:00:00Z"}}, 422, "when_never_fires", "when"),
        ({"name": "other"}, 422, "input_invalid", "name"),
        ({"payload": 5}, 409, "conflict", None),
        ({"end_at": "2001-01-01T00:00:00Z"}, 422, "when_never_fires", "when"),
    ],
)
async def test_a_plan_refuses_what_the_edit_would(
    api: Api, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    await create(api)
    refused(await api.post("/schedules/nightly/plan", body), status, code, field)
    refused(await api.ask("PATCH", "/schedules/nightly", body), status, code, field)


async def test_invalid_plan_query_is_refused(api: Api) -> None:
    await create(api)
    for query, field in (
        ("horizon=0s", "horizon"),
        ("horizon=soon", "horizon"),
        ("count=0", "count"),
        ("x=1", "x"),
    ):
        refused(
            await api.post(f"/schedules/nightly/plan?{query}", {"priority": 1}), 422, "input_invalid", field
        )
    refused(await api.post("/schedules/other/plan", {"priority": 1}), 404, "schedule_not_found")


async def preview(api: Api, **body: Any) -> dict[str, Any]:
    done = await api.post("/preview", body)
    assert done.status_code == 200, done.text
    answer: dict[str, Any] = done.json()
    return answer


async def test_preview_has_words_and_notes(api: Api) -> None:
    """E1, E2: the gap and the fold of the clocks are named where they concern a fire."""
    spring = await preview(
        api, when={"cron": "30 2 * * *", "tz": "Europe/Berlin"}, count=2, after="2026-03-28T12:00:00Z"
    )
    assert spring["words"] == "at 02:30, every day, Europe/Berlin time"
    assert spring["fires"] == [
        {
            "at": "2026-03-29T01:00:00Z",
            "local": "2026-03-29T03:00:00+02:00",
            "note": "the clock jumps from 02:00 to 03:00: 02:30 does not exist and fires at 03:00 instead",
        },
        {"at": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00", "note": None},
    ]
    assert spring["warnings"][0] == (
        "on 2026-10-25 the clock goes back from 03:00 to 02:00: 02:30 happens twice, and fires "
        "the first time only"
    )


async def test_a_preview_stays_within_its_bounds(api: Api) -> None:
    bounds = {"start_at": "2030-01-01T09:00:00Z", "end_at": "2030-01-02T09:00:00Z"}
    found = await preview(api, when={"cron": "0 9 * * *"}, **bounds)
    assert [fire["at"] for fire in found["fires"]] == ["2030-01-01T09:00:00Z", "2030-01-02T09:00:00Z"]
    none = await preview(api, when={"at": "2001-01-01T00:00:00Z"})
    assert (none["fires"], none["words"]) == ([], "once, at 2001-01-01 00:00:00 UTC")
    assert none["warnings"] == [
        "there are no more fires: all its instants are in the past, or outside start_at and end_at"
    ]


async def test_hash_field_depends_on_the_name(api: Api) -> None:
    found = await preview(api, when={"cron": "H 3 * * *"})
    assert found["warnings"] == [
        "H depends on the name of the schedule: a schedule fires at other times than these"
    ]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "input_invalid", "when"),
        ({"when": {"cron": "x"}}, "when_invalid", "when.cron"),
        ({"when": {"cron": "0 0 30 2 *"}}, "when_never_fires", "when.cron"),
        ({"when": {"cron": "0 9 * * *", "tz": "Mars/Base"}}, "zone_unknown", "when.tz"),
        ({"when": BERLIN, "count": 0}, "input_invalid", "count"),
        ({"when": BERLIN, "count": 1_001}, "input_invalid", "count"),
        ({"when": BERLIN, "count": True}, "input_invalid", "count"),
        ({"when": BERLIN, "after": "2026-01-01"}, "input_invalid", "after"),
        ({"when": BERLIN, "after": "2026-02-30T00:00:00Z"}, "input_invalid", "after"),
        ({"when": BERLIN, "tz": "UTC"}, "input_invalid", "tz"),
    ],
)
async def test_invalid_preview_is_refused(api: Api, body: dict[str, Any], code: str, field: str) -> None:
    refused(await api.post("/preview", body), 422, code, field)


async def test_preview_of_a_schedule_matches_its_expression(api: Api) -> None:
    await create(api, when=BERLIN)
    own = (await api.get("/schedules/nightly/preview?count=3")).json()
    other = await preview(api, when=BERLIN, count=3)
    assert (own["words"], own["details"], own["warnings"]) == (
        other["words"],
        other["fires"],
        other["warnings"],
    )
    assert own["fires"] == [fire["at"] for fire in own["details"]]
    assert (await api.get("/schedules/nightly")).json()["description"] == own["words"]
    await api.ask("PATCH", "/schedules/nightly", {"max_runs": 2, "target": TASK})
    assert len((await api.get("/schedules/nightly/preview?count=3")).json()["fires"]) == 2
