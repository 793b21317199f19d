"""/api/v1/alerts: channels, rules and mutes over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING

URL = "https://hooks.example.org/duetime"


@pytest.fixture
async def client() -> Any:
    app = dt.App("memory://")
    await app.open()
    transport = httpx2.ASGITransport(build(app, Settings(), ring=RING))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1/api/v1/alerts") as client:
        yield client
    await app.close()


async def test_channel_keeps_its_secret_and_never_shows_it(client: Any) -> None:
    target = {"type": "slack", "url": f"{URL}/s3cret"}
    made = await client.put("/channels/chat", json={"target": target})
    assert made.status_code == 200, made.text
    assert (made.json()["secrets"], made.json()["settings"]) == (["url"], {})
    quiet = [{"start": "22:00", "end": "07:00", "tz": "Europe/Berlin"}]
    body = {"target": {"type": "slack"}, "quiet": quiet}
    changed = await client.put("/channels/chat", json=body, headers={"If-Match": '"1"'})
    assert changed.json()["secrets"] == ["url"]
    assert (await client.put("/channels/chat", json=body, headers={"If-Match": '"1"'})).status_code == 412
    assert "s3cret" not in (await client.get("/channels")).text
    missing = await client.put("/channels/other", json={"target": {"type": "slack"}})
    assert (missing.status_code, missing.json()["code"], missing.json()["field"]) == (409, "conflict", "url")
    sent = await client.post("/channels/chat/test")
    assert sent.status_code == 202
    [delivery] = (await client.get("/deliveries")).json()["items"]
    assert (delivery["id"], delivery["labels"]) == (sent.json()["job_id"], {"channel": "chat"})
    assert "s3cret" not in str(delivery)
    assert (await client.delete("/channels/chat")).status_code == 204
    assert (await client.delete("/channels/chat")).json()["code"] == "channel_not_found"


MAIL = {"type": "email", "host": "mail.example.org", "sender": "a@example.org", "to": ["b@example.org"]}


@pytest.mark.parametrize(
    ("target", "moved", "near", "secret", "value"),
    [
        (
            {"type": "webhook", "url": URL},
            {"url": "https://hooks.example.org:8443/duetime"},
            {"url": "https://hooks.example.org/other"},
            "signing_secret",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ),
        (
            {"type": "alertmanager", "url": URL},
            {"url": "http://hooks.example.org/duetime"},
            {"url": "https://HOOKS.example.org:443/"},
            "authorization",
            "Bearer s3cret",
        ),
        (
            {"type": "pagerduty"},
            {"url": "https://evil.example/"},
            {"enabled": False},
            "routing_key",
            "s3cret",
        ),
        (
            MAIL | {"username": "ada"},
            {"host": "evil.example"},
            {"to": ["c@example.org"]},
            "password",
            "s3cret",
        ),
        (MAIL | {"username": "ada"}, {"port": 2525}, {"tls": "tls"}, "password", "s3cret"),
        (MAIL | {"username": "ada"}, {"username": "eve"}, {"sender": "c@example.org"}, "password", "s3cret"),
    ],
)
async def test_secret_does_not_move_with_its_channel(
    client: Any, target: Any, moved: Any, near: Any, secret: str, value: str
) -> None:
    """A caller who may change channels may not learn their secrets: they stay with their receiver."""

    async def put(**changes: Any) -> Any:
        body = {"enabled": changes.pop("enabled", True), "target": {**target, **changes}}
        return await client.put("/channels/one", json=body)

    assert (await put(**{secret: value})).status_code == 200
    assert (await put(**near)).json()["secrets"] == [secret]
    refused = await put(**moved)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (409, "conflict", secret)
    assert "channel moves to another receiver" in refused.json()["detail"]
    assert (await put(**near)).json()["secrets"] == [secret], "nothing was changed"
    assert (await put(**moved, **{secret: value})).json()["secrets"] == [secret]


async def test_channel_without_its_secret_moves(client: Any) -> None:
    hook = {"type": "webhook", "url": URL, "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    assert (await client.put("/channels/one", json={"target": hook})).json()["secrets"] == ["signing_secret"]
    elsewhere = {"type": "webhook", "url": "https://other.example.org/", "signing_secret": None}
    assert (await client.put("/channels/one", json={"target": elsewhere})).json()["secrets"] == []
    mail = MAIL | {"username": "ada", "password": "s3cret"}
    assert (await client.put("/channels/two", json={"target": mail})).json()["secrets"] == ["password"]
    open_relay = MAIL | {"host": "relay.example.org"}
    assert (await client.put("/channels/two", json={"target": open_relay})).json()["secrets"] == []


async def test_channel_with_an_address_that_may_not_be_called_is_refused(client: Any) -> None:
    for kind in ("webhook", "slack", "alertmanager"):
        for url in ("http://10.0.0.1/hook", "https://169.254.169.254/hook", "https://[fd00::1]/hook"):
            refused = await client.put("/channels/ops", json={"target": {"type": kind, "url": url}})
            assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (
                422,
                "target_not_allowed",
                "url",
            )
    made = await client.put("/channels/ops", json={"target": {"type": "webhook", "url": URL}})
    assert made.status_code == 200
    moved = await client.put("/channels/ops", json={"target": {"url": "http://10.0.0.1/hook"}})
    assert moved.json()["code"] == "target_not_allowed"


async def test_null_removes_an_optional_secret_and_no_other_field(client: Any) -> None:
    hook: dict[str, Any] = {"type": "webhook", "url": URL}
    manager: dict[str, Any] = {"type": "alertmanager", "url": URL}
    mail: dict[str, Any] = {"type": "email", "host": "mail.example.org", "sender": "a@example.org"}
    mail |= {"to": ["b@example.org"], "port": 2525.0}
    login = {"username": "ada", "password": "s3cret"}
    for name, target, secret, text in (
        ("hook", hook, "signing_secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("am", manager, "authorization", "Bearer s3cret"),
    ):
        for given, expected in (({secret: text}, [secret]), ({}, [secret]), ({secret: None}, []), ({}, [])):
            done = await client.put(f"/channels/{name}", json={"target": {**target, **given}})
            assert (done.status_code, done.json()["secrets"]) == (200, expected), done.text
    await client.put("/channels/team", json={"target": mail | login})
    await client.put("/channels/chat", json={"target": {"type": "slack", "url": URL}})
    for name, target, field, reason in (
        ("chat", {"type": "slack", "url": None}, "url", "cannot be removed: a channel of type slack needs"),
        ("hook", hook | {"url": None}, "url", "is null: leave it out, or give a value"),
        ("team", mail | {"username": "ada", "password": None}, "password", "belongs to the username"),
    ):
        refused = await client.put(f"/channels/{name}", json={"target": target})
        assert (refused.status_code, refused.json()["field"]) == (422, field), refused.text
        assert reason in refused.json()["detail"]
    stored = {one["name"]: one["secrets"] for one in (await client.get("/channels")).json()["items"]}
    assert stored == {"hook": [], "am": [], "team": ["password"], "chat": ["url"]}
    without = await client.put("/channels/team", json={"target": mail | {"password": None}})
    assert (without.json()["secrets"], without.json()["settings"]["port"]) == ([], 2525), without.text


async def test_channel_is_checked_by_field(client: Any) -> None:
    quiet = {"start": "22:00", "end": "07:00"}
    mail = {"type": "email", "host": "mail.example.org", "sender": "a@example.org", "to": ["b@example.org"]}
    for target, times, field in (
        ({"type": "pigeon"}, [], "type"),
        ({"type": "webhook", "url": URL, "colour": "red"}, [], "colour"),
        ({"type": "webhook", "url": URL, "name": "y"}, [], "target"),
        ({"type": "webhook", "url": URL, "quiet": []}, [], "target"),
        ({"type": "webhook", "url": "ftp://x"}, [], "url"),
        ({**mail, "port": 0}, [], "port"),
        ({**mail, "to": ["ops"]}, [], "to"),
        ({**mail, "username": "ada"}, [], "password"),
        (mail, [quiet, {**quiet, "end": "7"}], "quiet[1].end"),
        (mail, [{**quiet, "tz": "Europe/Berlinn"}], "quiet[0].tz"),
        (mail, [quiet, quiet, {**quiet, "days": []}], "quiet[2].days"),
    ):
        refused = await client.put("/channels/x", json={"target": target, "quiet": times})
        assert refused.json()["field"] == field, refused.text
    assert (await client.get("/channels")).json()["items"] == []


async def test_rule_is_checked_by_field(client: Any) -> None:
    good = await client.put(
        "/rules/nightly", json={"condition": "silent", "schedule": "nightly", "after": "2h"}
    )
    assert good.status_code == 200, good.text
    for body, field in (
        ({"condition": "noisy"}, "condition"),
        ({"condition": "node_lost", "schedule": "x"}, "schedule"),
        ({"condition": "silent", "after": "soon"}, "after"),
        ({"condition": "failing", "ratio": 2}, "ratio"),
        ({"condition": "failing", "window": "1h"}, "window"),
    ):
        refused = await client.put("/rules/x", json=body)
        assert (refused.status_code, refused.json()["field"]) == (422, field), refused.text
    names = [rule["name"] for rule in (await client.get("/rules")).json()["items"]]
    assert names[0] == "nightly"
    assert {"silent", "failing", "dead_letters", "queue_lag"} <= set(names)


async def test_mute_begins_and_ends(client: Any) -> None:
    made = await client.post("/mutes", json={"for": "2h", "subject": "report-*"})
    assert made.status_code == 201, made.text
    assert [one["id"] for one in (await client.get("/mutes")).json()["items"]] == [made.json()["id"]]
    assert (await client.delete(f"/mutes/{made.json()['id']}")).status_code == 204
    spaced = await client.post("/mutes", json={"for": "2h", "subject": "nightly report"})
    assert spaced.json()["subject"] == "nightly report", spaced.text
    assert (await client.post("/nothing/snooze")).json()["code"] == "alert_not_found"
    assert (await client.get("http://127.0.0.1/api/v1/alerts?past=true")).json()["items"] == []
