"""Every channel against a real server: HTTP, SMTP and Alertmanager. A node delivers the notices."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from email import message_from_bytes
from email.message import Message
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from standardwebhooks import Webhook

import duetime as dt
from duetime.model.keyring import KeyRing
from duetime.model.signing import shown_secrets
from tests.servers.alertmanager import AlertmanagerServer
from tests.servers.process import free_port
from tests.servers.receiver import Receiver

KEY = "test:" + base64.b64encode(b"k" * 32).decode()
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
TIMEOUT = 60.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def app() -> AsyncIterator[dt.App]:
    """Planner only: it delivers alerts although it is not a worker."""
    app = dt.App("memory://", secret_keys=[KEY])
    async with app.running(roles=["planner"], alert_interval="1s"):
        yield app


async def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def lag(app: dt.App, after: str = "100ms") -> None:
    """A condition that holds until the job is cancelled."""
    await app.alerts.set_rule("queue_lag", after=after)
    await app.submit("missing", queue="mail")


async def recover(app: dt.App) -> None:
    for job in await app.jobs(queue="mail"):
        await app.cancel_job(job.id)


async def test_webhook_is_signed_and_tells_alert_and_recovery(app: dt.App, receiver: Receiver) -> None:
    await app.alerts.set_channel("hook", type="webhook", url=f"{receiver.url}/in", signing_secret=SECRET)
    await lag(app)
    await until(lambda: receiver.received)
    await recover(app)
    await until(lambda: len(receiver.received) == 2)
    first, second = receiver.received
    for one in (first, second):
        Webhook(SECRET).verify(one.body.decode(), one.headers)
    assert (first.json["type"], second.json["type"]) == ("alert.firing", "alert.resolved")
    [alert] = first.json["data"]["alerts"]
    assert (alert["condition"], alert["subject"]) == ("queue_lag", "mail")
    assert second.json["data"]["alerts"][0]["id"] == alert["id"]


async def test_webhook_without_a_secret_is_signed_by_the_service(app: dt.App, receiver: Receiver) -> None:
    await app.alerts.set_channel("hook", type="webhook", url=receiver.url)
    await app.alerts.test("hook")
    await until(lambda: receiver.received)
    [secret] = shown_secrets(KeyRing.parse([KEY]), "default", receiver.url)
    [one] = receiver.received
    Webhook(secret).verify(one.body.decode(), one.headers)
    assert one.json["type"] == "alert.test"


async def test_slack_gets_text_at_its_secret_address(app: dt.App, receiver: Receiver) -> None:
    await app.alerts.set_channel("chat", type="slack", url=f"{receiver.url}/services/T0/B0/s3cret")
    [channel] = await app.alerts.channels()
    assert (channel.settings, channel.secrets) == ({}, ["url"])
    stored = await app.store.list_records("alert_channel", None, 10)
    assert b"s3cret" not in stored[0].value
    receiver.answers = [500]
    job = await app.alerts.test("chat")
    await until(lambda: len(receiver.received) == 2)
    assert receiver.received[1].path == "/services/T0/B0/s3cret"
    assert receiver.received[1].json["text"].startswith("*[TEST] test: chat*\n")
    await app.wait_for(job, "60s")
    attempts = await app.read_attempts(job)
    assert "s3cret" not in (attempts[0].error or "")


async def test_pagerduty_gets_events_in_its_form(app: dt.App, receiver: Receiver) -> None:
    await app.alerts.set_channel(
        "pager", type="pagerduty", routing_key="R0UTING", url=f"{receiver.url}/v2/enqueue"
    )
    await lag(app)
    await until(lambda: receiver.received)
    await recover(app)
    await until(lambda: len(receiver.received) == 2)
    trigger, resolve = (one.json for one in receiver.received)
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"]
    assert trigger["routing_key"] == resolve["routing_key"] == "R0UTING"
    payload = trigger["payload"]
    assert {"summary", "source", "severity"} <= payload.keys()
    assert payload["severity"] in ("critical", "error", "warning", "info")
    jobs = await app.alerts.deliveries()
    assert b"R0UTING" not in json.dumps([str(job) for job in jobs]).encode()


class Mailbox:
    """A real SMTP server on a thread."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.answers: list[str] = []

    async def handle_DATA(  # noqa: N802  # as aiosmtpd calls it
        self, server: Any, session: Any, envelope: Any
    ) -> str:
        if self.answers:
            return self.answers.pop(0)
        self.mails.append(message_from_bytes(envelope.content))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box, port = Mailbox(), free_port()
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    yield box, port
    server.stop()


async def test_email_is_sent_and_repeated_after_a_temporary_error(
    app: dt.App, mailbox: tuple[Mailbox, int]
) -> None:
    box, port = mailbox
    box.answers = ["451 try again later"]
    await app.alerts.set_channel(
        "team", type="email", host="127.0.0.1", port=port, tls="none",
        sender="duetime@example.org", to=["ops@example.org", "dev@example.org"],
    )  # fmt: skip
    job = await app.alerts.test("team")
    await until(lambda: box.mails)
    [mail] = box.mails
    assert mail["Subject"] == "[TEST] test: team"
    assert mail["To"] == "ops@example.org, dev@example.org"
    assert mail["Message-ID"] == f"<{job}@example.org>"
    assert "alerts of Duetime arrive here" in str(mail.get_payload())


async def test_email_that_is_refused_is_a_dead_letter(app: dt.App, mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    box.answers = ["550 no such user"]
    await app.alerts.set_channel(
        "team", type="email", host="127.0.0.1", port=port, tls="none",
        sender="duetime@example.org", to="ops@example.org",
    )  # fmt: skip
    job = await app.alerts.test("team")
    done = await app.wait_for(job, "60s")
    assert (done.state, done.error) == ("dead", f"127.0.0.1 port {port} answers 550")
    [delivery] = await app.alerts.deliveries()
    assert (delivery.id, delivery.state) == (job, "dead")


async def test_starttls_is_required_by_default(app: dt.App, mailbox: tuple[Mailbox, int]) -> None:
    _, port = mailbox
    await app.alerts.set_channel(
        "team", type="email", host="127.0.0.1", port=port,
        sender="duetime@example.org", to="ops@example.org",
    )  # fmt: skip
    done = await app.wait_for(await app.alerts.test("team"), "60s")
    assert done.state == "dead"
    assert "offers no STARTTLS" in (done.error or "")


@pytest.fixture
def alertmanager() -> Iterator[AlertmanagerServer]:
    with AlertmanagerServer() as server:
        yield server


async def test_alertmanager_shows_the_alert_and_its_end(
    alertmanager: AlertmanagerServer, app: dt.App
) -> None:
    await app.alerts.set_channel("am", type="alertmanager", url=alertmanager.address)
    await lag(app)
    await until(alertmanager.alerts)
    [alert] = alertmanager.alerts()
    assert alert["labels"] == {
        "alertname": "DuetimeQueueLag", "severity": "warning", "subject": "mail", "tenant": "default",
    }  # fmt: skip
    assert alert["annotations"]["summary"].startswith("a job is due for ")
    await recover(app)
    await until(lambda: not alertmanager.alerts())


async def test_channel_that_is_gone_is_a_dead_letter(app: dt.App, receiver: Receiver) -> None:
    receiver.answers = [503] * 3
    await app.alerts.set_channel("hook", type="webhook", url=receiver.url)
    job = await app.alerts.test("hook")
    await until(lambda: receiver.received)
    await app.alerts.remove_channel("hook")
    done = await app.wait_for(job, "60s")
    assert (done.state, "was removed" in (done.error or "")) == ("dead", True)
