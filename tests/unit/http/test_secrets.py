"""Secret header values at rest: bound to tenant and header, readable after a change of keys, unreadable by
anybody else."""

from __future__ import annotations

from base64 import b64encode

import pytest

from duetime.errors import InvalidInput, SecretUnreadable
from duetime.invokers.http.secrets import SecretBox
from duetime.model.keyring import KeyRing

CANARY = "canary-4711"
OLD, NEW = (f"{name}:{b64encode(name.encode() * 16).decode()}" for name in ("old", "new"))


def test_sealed_secret_opens_to_the_same_text() -> None:
    box = SecretBox(KeyRing.parse([NEW]))
    sealed = box.seal("acme", "Authorization", CANARY)
    assert CANARY not in sealed
    assert b64encode(CANARY.encode()).decode()[:8] not in sealed
    assert box.open("acme", "authorization", sealed) == CANARY
    assert box.seal("acme", "Authorization", CANARY) != sealed


@pytest.mark.parametrize(
    ("tenant", "name"),
    [("evil", "Authorization"), ("acme", "X-Other"), ("acme\0authorization", ""), ("", "Authorization")],
)
def test_moved_to_another_tenant_or_header_it_does_not_open(tenant: str, name: str) -> None:
    box = SecretBox(KeyRing.parse([NEW]))
    with pytest.raises(SecretUnreadable):
        box.open(tenant, name, box.seal("acme", "Authorization", CANARY))


def test_keys_can_be_changed() -> None:
    sealed = SecretBox(KeyRing.parse([OLD])).seal("acme", "A", CANARY)
    both = SecretBox(KeyRing.parse([NEW, OLD]))
    assert both.open("acme", "A", sealed) == CANARY
    assert both.seal("acme", "A", CANARY).startswith("v1.new.")
    with pytest.raises(SecretUnreadable, match="add it to this node's secret_keys"):
        SecretBox(KeyRing.parse([NEW])).open("acme", "A", sealed)


@pytest.mark.parametrize(
    "broken", ["", "v1", "v1.new", "v1.new.", "v1.new.!!!", "v2.new.AAAA", "v1.new.AAAA", "plain text"]
)
def test_malformed_secret_does_not_open(broken: str) -> None:
    with pytest.raises(SecretUnreadable):
        SecretBox(KeyRing.parse([NEW])).open("acme", "A", broken)


def test_a_flipped_bit_is_seen() -> None:
    box = SecretBox(KeyRing.parse([NEW]))
    sealed = box.seal("acme", "A", CANARY)
    at = len("v1.new.") + 20
    flipped = sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]
    with pytest.raises(SecretUnreadable):
        box.open("acme", "A", flipped)


def test_without_a_key_nothing_is_kept() -> None:
    with pytest.raises(InvalidInput, match=r"target\.secret_headers.*without a secret key"):
        SecretBox(KeyRing()).seal("acme", "A", CANARY)
