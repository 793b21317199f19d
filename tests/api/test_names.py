"""Names with whatever a name may have, in paths: a slash, what URLs and HTTP use themselves, other
scripts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from duetime.api.routing import path_of
from tests.api.conftest import TASK, Api, refused

NASTY = [
    "a/b",
    "/a",
    "a/",
    "/",
    "a//b",
    "a/pause",
    "x/jobs",
    "a/b/why",
    "pause",
    "100%",
    "%2F",
    "%2f/%252F",
    "a b",
    "a?b=c",
    "#1",
    "a+b&c;d",
    "a\\b",
    "plan",
    '"a"',
    "\u00e4/\u00f6",
    "\u65e5\u672c/\u8a9e",
    "\U0001f389",
    "...",
    "a/../b",
    "\u00fc" * 128,
    "a:b@c",
    "{name}",
    "bulk",
    "batch",
]
WHEN = {"every": "5m"}


def part(name: str) -> str:
    return quote(name, safe="")


async def test_queues_of_any_name_are_paused_resumed_and_limited(api: Api) -> None:
    """Of all names in one test: starting a service takes longer than the rest."""
    for name in NASTY:
        await use_queue(api, name)
    assert [one["name"] for one in (await api.get("/queues")).json()["items"]] == sorted(NASTY)


async def use_queue(api: Api, name: str) -> None:
    await api.submit(queue=name, delay="1h")
    paused = await api.post(f"/queues/{part(name)}/pause", {"note": "n"})
    assert (paused.status_code, paused.json()["name"], paused.json()["paused"], paused.json()["pending"]) == (
        200,
        name,
        True,
        1,
    )
    assert (await api.post(f"/queues/{part(name)}/resume")).json()["paused"] is False
    assert (await api.post(f"/queues/{part(name)}/limit", {"max_running": 3, "rate": None})).json()[
        "name"
    ] == name


async def test_every_schedule_route_accepts_any_name(api: Api) -> None:
    for name in NASTY:
        await use_schedule(api, name)


async def use_schedule(api: Api, name: str) -> None:
    made = await api.post("/schedules", {"name": name, "when": WHEN, "target": TASK})
    assert made.status_code == 201
    path = f"/schedules/{part(name)}"
    for rest in ("", "/preview", "/why", "/versions", "/jobs"):
        assert (await api.get(f"{path}{rest}")).status_code == 200, rest
    assert (await api.get(path)).json()["name"] == name
    calls: list[tuple[str, Any]] = [
        ("/pause", None),
        ("/resume", None),
        ("/trigger", None),
        ("/backfill", {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:10:00Z"}),
        ("/plan", {"when": {"every": "9m"}}),
        ("/restore", {"version": 1}),
    ]
    for rest, body in calls:
        done = await api.post(f"{path}{rest}", body)
        assert done.status_code in (200, 201), (rest, done.text)
    assert {job["schedule"] for job in (await api.get(f"{path}/jobs")).json()["items"]} == {name}
    assert (await api.ask("PATCH", path, {"priority": 7})).json()["priority"] == 7
    assert (await api.ask("DELETE", path)).status_code == 204
    refused(await api.get(path), 404, "schedule_not_found")


async def test_schedule_name_with_a_slash_is_not_a_subpath(api: Api) -> None:
    """GET /schedules/a/jobs are the jobs of `a`; GET /schedules/a%2Fjobs is the schedule `a/jobs`."""
    for name in ("a", "a/jobs"):
        await api.post("/schedules", {"name": name, "when": WHEN, "target": TASK})
    assert "items" in (await api.get("/schedules/a/jobs")).json()
    assert (await api.get("/schedules/a%2Fjobs")).json()["name"] == "a/jobs"
    assert (await api.get("/schedules/a%2fjobs/jobs")).json()["items"] == []
    refused(await api.get("/schedules/a/nothing"), 404, "not_found")


async def test_queue_name_with_a_decoded_slash_is_found(api: Api) -> None:
    assert (await api.post("/queues/a/b/pause")).json()["name"] == "a/b"
    assert (await api.post("/queues/a/pause/pause")).json()["name"] == "a/pause"
    refused(await api.post("/queues//pause"), 422, "input_invalid", "name")


async def test_wrong_method_lists_the_right_ones(api: Api) -> None:
    for path in ("/queues/a%2Fb/pause", "/queues/a/b/pause", "/queues/a/pause"):
        refused(await api.get(path), 405, "method_not_allowed")
        assert (await api.get(path)).headers["allow"] == "POST"
    assert (await api.post("/schedules/a%2Fb")).headers["allow"] == "DELETE, GET, PATCH"


async def test_invalid_name_is_refused(api: Api) -> None:
    for name in ("%00", "a%00b", "a%2F%00", "%20", "a%0A", "@x", "*"):
        assert (await api.post(f"/queues/{name}/pause")).status_code in (404, 422)
        assert (await api.get(f"/schedules/{name}")).status_code in (404, 422)
    assert (await api.get("/queues")).json()["items"] == []


@pytest.mark.parametrize(
    ("raw", "path", "told"),
    [
        (b"/a%2Fb/c", "/a/b/c", "/a\0b/c"),
        (b"/a%2fb%252F", "/a/b%2F", "/a\0b%2F"),
        (b"/%C3%A4%2F", "/\u00e4/", "/\u00e4\0"),
        (b"/a/b", "/a/b", "/a/b"),
        (b"/a%2F%00", "/a/\0", "/a/\0"),
        (b"/a%2Fb", "/other", "/other"),
        (None, "/a/b", "/a/b"),
    ],
)
def test_encoded_slash_is_part_of_a_name(raw: bytes | None, path: str, told: str) -> None:
    assert path_of({"path": path, "raw_path": raw}) == told
