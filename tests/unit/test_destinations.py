"""The setting `destinations`: what is read, what is refused, and that no error repeats a URL."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from duetime.config import Settings
from duetime.config_sources import load
from duetime.errors import ConfigError, InvalidInput
from duetime.invoker import Policies
from duetime.invokers.publish.handler import PublishHandler
from duetime.model import destination
from duetime.model.destination import check_destination
from duetime.model.publish import PublishTarget
from duetime.model.schedule import target

RABBIT = "amqp://anna:s3cret@mq.example/shop?exchange=orders&routing_key=new"


def loaded(text: str) -> Settings:
    return load({}, {"DUETIME_DESTINATIONS": text})


def test_destinations_are_read_from_a_variable_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "duetime.toml"
    file.write_text(f'[destinations]\norders = "{RABBIT}"\naudit = "redis://cache.example/2?stream=audit"\n')
    typed = loaded(f"orders={RABBIT}\n audit=redis://cache.example/2?stream=audit").destinations
    assert typed == load({}, {}, file).destinations
    orders, audit = typed
    assert (orders.name, orders.url) == ("orders", "amqp://anna:s3cret@mq.example/shop")
    assert (orders.options, orders.password) == ({"exchange": "orders", "routing_key": "new"}, "s3cret")
    assert (audit.kind.extra, audit.event_type) == ("redis", "duetime.job")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("amqp://anna:s3cret@mq.example", "NAME=URL"),
        ("orders=http://anna:s3cret@mq.example", "amqp://"),
        ("orders=amqp://anna:s3cret@mq.example", "needs exchange or routing_key"),
        ("orders=redis://anna:s3cret@/0?stream=x", "is not complete"),
        ("orders=redis://anna:s3cret@cache?stream=x&s3cret=1", "unknown option"),
        ("orders=sqs://anna:s3cret@sqs.eu-central-1.amazonaws.com/orders", "the URL of the queue"),
        ("orders=redis://anna:s3cret@[cache?stream=x", "is not a URL"),
        ("or/ders=" + RABBIT, "is not a name of a destination"),
    ],
)
def test_invalid_destination_is_explained_without_its_url(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(text)
    message = str(caught.value)
    assert reason in message
    assert "destinations (from DUETIME_DESTINATIONS)" in message
    assert "s3cret" not in message


def test_settings_and_destinations_show_no_password() -> None:
    settings = loaded(f"orders={RABBIT}")
    assert "s3cret" not in repr(settings)
    assert "s3cret" not in repr(settings.destinations)
    assert settings.destinations[0].hide_secrets("login anna:s3cret failed") == "login anna:*** failed"


def test_missing_client_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiormq", None)
    monkeypatch.delitem(sys.modules, "duetime.invokers.publish.rabbitmq", raising=False)
    with pytest.raises(
        ConfigError, match=r"orders needs the package 'aiormq': pip install 'duetime\[rabbitmq"
    ):
        PublishHandler(loaded(f"orders={RABBIT}").destinations[0], Policies())


def test_tenant_sees_only_destinations_that_it_may_use() -> None:
    known = destination.parse({"orders": f"{RABBIT}&tenants=shop", "audit": RABBIT})
    check_destination(known, "orders", "shop")
    with pytest.raises(InvalidInput, match=r"use audit$"):
        check_destination(known, "orders", "crm")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"destination": "no name"}, "target.destination"),
        ({}, "target.destination"),
        ({"destination": "orders", "key": ""}, "target.key"),
        ({"destination": "orders", "key": "ä"}, "target.key"),
        ({"destination": "orders", "key": "x" * 129}, "target.key"),
        ({"destination": "orders", "report": True}, "target.report"),
        ({"destination": "orders", "url": RABBIT}, "target.url"),
    ],
)
def test_invalid_target_names_its_field(value: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        PublishTarget.from_json({"type": "publish", **value})
    assert caught.value.field == field


def test_target_is_shown_as_it_was_written() -> None:
    written = {"type": "publish", "destination": "orders", "key": "c1", "report": "required"}
    stored = PublishTarget.from_json(written)
    assert target(stored.name, stored.to_spec()) == written
