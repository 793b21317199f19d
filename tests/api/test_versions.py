"""Versions of schedules over HTTP: who changed what and when, and the way back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.api.caller import AuthRequest, Caller
from duetime.api.service import build
from duetime.config import Settings
from duetime.errors import ScheduleNotFound
from duetime.model.api_key import Scope
from duetime.model.when import At
from duetime.testing.conformance.drafts import put_schedule
from tests.api.conftest import RING, TASK, Api, client_of, refused
from tests.api.test_schedules import create


class NamedAuthenticator:
    """Accepts every caller with a name."""

    local = False

    async def authenticate(self, request: AuthRequest) -> Caller:
        return Caller("default", frozenset(Scope), request.headers.get("x-name", "unknown"), "key")


async def versions(api: Api, reference: str = "nightly", query: str = "") -> list[dict[str, Any]]:
    found = await api.get(f"/schedules/{reference}/versions{query}")
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


async def test_every_version_has_author_and_difference(api: Api) -> None:
    named = Api(api.app, client_of(build(api.app, Settings(), authenticator=NamedAuthenticator(), ring=RING)))
    made = (
        await named.post(
            "/schedules",
            {"name": "nightly", "when": {"every": "1h"}, "target": TASK, "payload": {}},
            x_name="ann",
        )
    ).json()
    await named.ask(
        "PATCH",
        "/schedules/nightly",
        {"when": {"every": "2h"}, "timeout": "5m", "labels": {"a": "b"}},
        x_name="bob",
    )
    await named.post("/schedules/nightly/pause", {"note": "moving"}, x_name="cid")
    await named.post("/schedules/nightly/resume", x_name="dan")
    await named.post("/schedules/nightly/restore", {"version": 1}, x_name="eve")
    rows = await versions(api)
    assert [(row["version"], row["author"], row["change"], row["paused"]) for row in rows] == [
        (5, "key (eve)", "replaced", False),
        (4, "key (dan)", "resumed", False),
        (3, "key (cid)", "paused", True),
        (2, "key (bob)", "replaced", False),
        (1, "key (ann)", "created", False),
    ]
    assert rows[3]["diff"] == [
        {"field": "when", "before": {"every": "1h"}, "after": {"every": "2h"}},
        {"field": "timeout", "before": None, "after": "5m"},
        {"field": "labels", "before": {}, "after": {"a": "b"}},
    ]
    assert rows[2]["diff"] == [{"field": "paused", "before": False, "after": True}]
    assert rows[4]["diff"] == []
    assert (
        rows[0]["definition"] == rows[4]["definition"] == {name: made[name] for name in rows[0]["definition"]}
    )
    assert {row["schedule_id"] for row in rows} == {made["id"]}
    await named.ask("DELETE", "/schedules/nightly", x_name="fay")
    assert (await versions(api))[0]["author"] == "key (fay)"


async def test_versions_have_no_author_in_local_mode(api: Api) -> None:
    await create(api)
    assert [row["author"] for row in await versions(api)] == [None]


async def test_versions_are_paged_with_differences(api: Api) -> None:
    made = await create(api)
    for priority in (1, 2, 3, 4):
        await api.ask("PATCH", "/schedules/nightly", {"priority": priority})
    first = (await api.get("/schedules/nightly/versions?limit=2")).json()
    assert [
        (row["version"], row["diff"][0]["before"], row["diff"][0]["after"]) for row in first["items"]
    ] == [(5, 3, 4), (4, 2, 3)]
    rest = (await api.get(f"/schedules/nightly/versions?limit=2&cursor={first['next_cursor']}")).json()
    assert [row["version"] for row in rest["items"]] == [3, 2]
    last = (await api.get(f"/schedules/nightly/versions?limit=2&cursor={rest['next_cursor']}")).json()
    assert ([row["version"] for row in last["items"]], last["next_cursor"]) == ([1], None)
    assert len(await versions(api, made["id"])) == 5
    refused(
        await api.get(f"/schedules/other/versions?limit=2&cursor={first['next_cursor']}"),
        400,
        "cursor_invalid",
    )
    refused(await api.get("/schedules/other/versions"), 404, "schedule_not_found")


async def test_version_is_restored(api: Api) -> None:
    made = await create(api, timeout="1m", owner="me")
    await api.ask(
        "PATCH",
        "/schedules/nightly",
        {"when": {"every": "5m"}, "timeout": None, "payload": {"n": 2}, "target": {**TASK, "name": "b"}},
    )
    await api.post("/schedules/nightly/pause", {"note": "moving"})
    refused(
        await api.post("/schedules/nightly/restore", {"version": 1}, if_match='"2"'), 412, "version_conflict"
    )
    done = await api.post("/schedules/nightly/restore", {"version": 1}, if_match='"3"')
    assert (done.status_code, done.headers["etag"]) == (200, '"4"'), done.text
    back = done.json()
    same = set(made) - {"version", "updated_at", "paused", "pause_note", "next_fire_time"}
    assert {name: back[name] for name in same} == {name: made[name] for name in same}
    assert (back["paused"], back["pause_note"]) == (True, "moving")
    assert (await api.post("/schedules/nightly/restore", {"version": 1})).json()[
        "version"
    ] == 4  # it is that already
    refused(await api.post("/schedules/nightly/restore", {"version": 9}), 404, "version_not_found")
    refused(await api.post("/schedules/other/restore", {"version": 1}), 404, "schedule_not_found")
    refused(await api.post("/schedules/nightly/restore", {"version": 0}), 422, "input_invalid", "version")
    refused(await api.post("/schedules/nightly/restore", {}), 422, "input_invalid", "version")


async def test_past_one_time_schedule_is_not_restored(api: Api) -> None:
    await create(api)
    draft = (await api.app.schedules.find("nightly")).draft
    past = replace(draft, when=At(datetime(2001, 1, 1, tzinfo=UTC)))
    await put_schedule(api.app.store, past, None)
    await api.ask("PATCH", "/schedules/nightly", {"when": {"every": "5m"}})
    refused(await api.post("/schedules/nightly/restore", {"version": 2}), 422, "when_never_fires")


async def test_a_removed_schedule_comes_back_under_its_name(api: Api) -> None:
    made = await create(api)
    await api.ask("DELETE", "/schedules/nightly")
    assert [(row["version"], row["change"]) for row in await versions(api)] == [
        (2, "removed"),
        (1, "created"),
    ]
    refused(await api.get(f"/schedules/{made['id']}/versions"), 404, "schedule_not_found")
    refused(
        await api.post("/schedules/nightly/restore", {"version": 1}, if_match='"1"'), 412, "version_conflict"
    )
    back = (await api.post("/schedules/nightly/restore", {"version": 1})).json()
    assert (back["version"], back["payload"], back["id"] != made["id"]) == (3, made["payload"], True)
    assert [row["schedule_id"] for row in await versions(api)] == [back["id"], made["id"], made["id"]]
    assert (await versions(api))[0]["diff"] == []


async def test_version_shows_the_change_of_a_secret_but_not_the_secret(api: Api) -> None:
    """Versions keep it encrypted; a restored one still has it."""
    target = {"type": "http", "url": "https://a.example/run", "secret_headers": {"X-Key": "hush-1"}}
    await create(api, target=target)
    before = (await api.app.schedules.find("nightly")).draft.target_spec
    await api.ask(
        "PATCH", "/schedules/nightly", {"target": {**target, "secret_headers": {"X-Key": "hush-2"}}}
    )
    answer = await api.get("/schedules/nightly/versions")
    assert "hush" not in answer.text
    [change] = answer.json()["items"][0]["diff"]
    assert (change["field"], change["before"] == change["after"]) == ("target", True)
    await api.post("/schedules/nightly/restore", {"version": 1})
    assert (await api.app.schedules.find("nightly")).draft.target_spec == before


async def test_other_tenant_neither_sees_nor_restores_versions(api: Api) -> None:
    await create(api)
    other = api.app.for_tenant("other")
    with pytest.raises(ScheduleNotFound):
        await other.versions("nightly")
    with pytest.raises(ScheduleNotFound):
        await other.versions.restore("nightly", 1)
