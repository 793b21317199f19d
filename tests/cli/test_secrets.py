"""Secrets of HTTP targets that are given on the command line, on a store."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

import duetime as dt
from duetime.invokers.http.secrets import SecretBox
from duetime.model.keyring import KeyRing
from duetime.model.target import HttpTarget
from tests.cli.conftest import Duetime

CANARY = "canary-5f0e1c"
KEY = f"k1:{b64encode(b'k' * 32).decode()}"
SECRET = ("--header", f"Authorization: Bearer {CANARY}")
URL = "https://agent.example/run"


def opened(folder: Path, key: str, name: str = "pulse") -> dict[str, str]:
    """The secrets of a stored schedule, decrypted."""

    async def spec() -> bytes:
        app = dt.App(f"sqlite:///{folder / 'duetime.db'}")
        await app.open()
        try:
            return (await app.schedules.find(name)).draft.target_spec or b""
        finally:
            await app.close()

    target, box = HttpTarget.from_spec(asyncio.run(spec())), SecretBox(KeyRing.parse([key]))
    return {name: box.open("default", name, secret.text) for name, secret in target.hidden}


def is_stored_as_text(folder: Path) -> bool:
    return any(CANARY.encode() in path.read_bytes() for path in folder.glob("duetime.db*"))


@pytest.mark.parametrize("configured", [True, False])
def test_secret_header_is_stored_encrypted(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch, configured: bool
) -> None:
    """With the configured key, or with the one next to the store's file, as `duetime serve` does."""
    if configured:
        monkeypatch.setenv("DUETIME_SECRET_KEYS", KEY)
    added = duetime("schedule", "add", "pulse", URL, "--every", "90d", *SECRET, "--json")
    assert added.status == 0, added.err
    assert added.json["target"]["secret_headers"] == {"Authorization": "***"}
    submitted = duetime("job", "submit", URL, "--at", "2099-01-01T00:00:00Z", *SECRET)
    assert submitted.status == 0, submitted.err
    key = KEY if configured else (folder / "duetime.db.key").read_text().strip()
    assert opened(folder, key) == {"Authorization": f"Bearer {CANARY}"}
    assert not is_stored_as_text(folder)


def test_edit_keeps_a_secret_that_it_leaves_out_for_the_same_host(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_SECRET_KEYS", KEY)
    duetime("schedule", "add", "pulse", URL, "--every", "90d", *SECRET)
    edit = ("schedule", "edit", "pulse", "--target")
    assert duetime(*edit, f"{URL}/2", "--method", "PUT", "--json").json["target"]["method"] == "PUT"
    assert opened(folder, KEY) == {"Authorization": f"Bearer {CANARY}"}
    moved = duetime(*edit, "https://other.example/run")
    assert (moved.status, "must be set again" in moved.err) == (2, True), moved.err


def test_secret_header_without_a_key_is_refused(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_AUTH", "keys")  # a service for others has no key of its own
    refused = duetime("schedule", "add", "pulse", URL, "--every", "90d", *SECRET)
    assert refused.status == 2
    assert "target.headers.Authorization" in refused.err
    assert "DUETIME_SECRET_KEYS" in refused.err
    assert duetime("schedule", "add", "pulse", URL, "--every", "90d").status == 0
    assert not is_stored_as_text(folder)
