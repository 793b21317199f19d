"""Channels of type apprise: a real receiver gets what Apprise sends, and the URL stays secret."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

import duetime as dt
from duetime.engine.alert.notices import ALERT
from duetime.errors import Conflict, InvalidInput
from duetime.invokers.alert.handler import AlertHandler
from duetime.model.job import Ending
from duetime.model.keyring import KeyRing
from duetime.model.url import ANY_ADDRESS
from tests.alerts.test_delivery import KEY, app, lag, receiver, recover, until
from tests.api.conftest import refused
from tests.api.keyed_api import open_keyed_api
from tests.servers.receiver import Receiver

__all__ = ["app", "receiver"]  # fixtures
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its plugins, which it loads all


def service_url(receiver: Receiver) -> str:
    """Of the plain JSON of Apprise, with a password."""
    return f"json://ops:s3cret@{receiver.url.removeprefix('http://')}/in"


@pytest.fixture
def debug_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


async def test_alert_and_recovery_are_told(
    app: dt.App, receiver: Receiver, debug_log: pytest.LogCaptureFixture
) -> None:
    await app.alerts.set_channel("phone", type="apprise", url=service_url(receiver))
    [channel] = await app.alerts.channels()
    assert (channel.type, channel.settings, channel.secrets) == ("apprise", {}, ["url"])
    [stored] = await app.store.list_records("alert_channel", None, 10)
    assert b"s3cret" not in stored.value
    await lag(app)
    await until(lambda: receiver.received)
    await recover(app)
    await until(lambda: len(receiver.received) == 2)
    first, second = (one.json for one in receiver.received)
    assert (first["title"], first["type"]) == ("[ALERT] queue lag: mail", "warning")
    assert first["message"].startswith("mail: a job is due for ")
    assert (second["title"], second["type"]) == ("[RECOVERED] queue lag: mail", "success")
    assert receiver.received[0].headers["authorization"].startswith("Basic ")
    assert "s3cret" not in debug_log.text


async def test_failed_delivery_is_repeated_without_showing_the_url(
    app: dt.App, receiver: Receiver, debug_log: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [500]
    await app.alerts.set_channel("phone", type="apprise", url=service_url(receiver))
    job = await app.alerts.test("phone")
    await until(lambda: len(receiver.received) == 2)
    done = await app.wait_for(job, "30s")
    assert (done.state, done.result) == ("succeeded", b'{"service":"json"}')
    [failed] = await app.read_attempts(job)
    assert failed.error == "Apprise could not deliver to json://: HTTP 500"
    assert "/in" not in debug_log.text


async def test_refused_delivery_is_a_dead_letter(app: dt.App, receiver: Receiver) -> None:
    receiver.answers = [403]
    await app.alerts.set_channel("phone", type="apprise", url=service_url(receiver))
    done = await app.wait_for(await app.alerts.test("phone"), "30s")
    assert (done.state, done.error) == ("dead", "Apprise could not deliver to json://: HTTP 403")


@pytest.mark.parametrize("url", ["nothing://here", "tgram://", "json", "", 5, "json://"])
async def test_url_that_apprise_does_not_know_is_refused(app: dt.App, url: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        await app.alerts.set_channel("phone", type="apprise", url=url)
    assert refused.value.field == "url"
    assert await app.alerts.channels() == []


async def test_url_that_is_left_out_stays(app: dt.App, receiver: Receiver) -> None:
    with pytest.raises(Conflict, match="url is missing"):
        await app.alerts.set_channel("phone", type="apprise")
    await app.alerts.set_channel("phone", type="apprise", url=service_url(receiver))
    await app.alerts.set_channel("phone", type="apprise", enabled=False)
    await app.alerts.test("phone")
    await until(lambda: receiver.received)


def test_missing_package_is_named() -> None:
    script = f"""
import asyncio, sys
sys.modules["apprise"] = None
import duetime as dt
from duetime.invokers.alert import apprise
app = dt.App("memory://", secret_keys=[{KEY!r}])
async def main():
    async with app.running():
        try:
            await app.alerts.set_channel("phone", type="apprise", url="tgram://1:a/b")
        except dt.InvalidInput as problem:
            print(problem)
    try:
        await apprise.send("tgram://1:a/b", {{}}, None)
    except Exception as problem:
        print(problem)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.count("needs the package 'apprise': pip install 'duetime[apprise]'") == 2, json.dumps(
        [done.stdout, done.stderr]
    )


async def test_service_accepts_it_only_with_the_setting_and_an_admin_key() -> None:
    body = {"target": {"type": "apprise", "url": "json://10.0.0.1/in"}}
    path = "/alerts/channels/phone"
    async with open_keyed_api() as api:
        operator = await api.key()
        refused(await api.ask("PUT", path, body, authorization=operator), 403, "apprise_not_allowed")
    async with open_keyed_api(allow_apprise=True) as api:
        admin, manager = await api.key(), await api.key("manage")
        other = await api.key(tenant="other")
        refused(await api.ask("PUT", path, body, authorization=manager), 403, "scope_missing")
        refused(await api.ask("PUT", path, body, authorization=other), 403, "tenant_not_allowed")
        made = await api.ask("PUT", path, body, authorization=admin)
        assert (made.status_code, made.json()["secrets"]) == (200, ["url"])
        typeless = {"target": {"url": "json://10.0.0.2/in"}}  # of the type that it has
        refused(await api.ask("PUT", path, typeless, authorization=manager), 403, "scope_missing")


async def test_node_without_the_setting_calls_nothing(receiver: Receiver) -> None:
    app, ring = dt.App("memory://", secret_keys=[KEY]), KeyRing.parse([KEY])
    app.use_target(ALERT, lambda now: AlertHandler(app.store, now, ring, ANY_ADDRESS))
    async with app.running():
        await app.alerts.set_channel("phone", type="apprise", url=service_url(receiver))
        job = await app.alerts.test("phone")
        async with asyncio.timeout(30):
            while not (attempts := await app.read_attempts(job)):
                await asyncio.sleep(0.02)
    assert "start it with --allow-apprise yes" in (attempts[0].error or "")
    assert attempts[0].ending is Ending.RELEASED, "another node may be allowed to"
    assert receiver.received == []
