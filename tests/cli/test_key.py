"""`duetime key`: the first key is created on the store itself."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import duetime as dt
from tests.cli.conftest import Duetime


def test_key_create_prints_only_the_key_and_stores_its_digest(duetime: Duetime, folder: Path) -> None:
    """So that `KEY=$(duetime key create ...)` works; the rest goes to stderr."""
    made = duetime("key", "create", "ops", "--scopes", "admin")
    assert made.status == 0, made.err
    assert re.fullmatch(r"dt_[0-9a-z]{10}_[0-9A-Za-z]{43}\n", made.out)
    assert "not shown again" in made.err
    assert "may read, submit, manage, admin for tenant default until it is revoked" in made.err
    assert not any(
        made.out.strip()[14:].encode() in path.read_bytes() for path in folder.iterdir() if path.is_file()
    )


def test_key_create_list_and_revoke(duetime: Duetime) -> None:
    options = (
        "--scopes",
        "read,manage",
        "--tenant",
        "acme",
        "--expires-in",
        "90d",
        "--rate",
        "50/1s",
        "--json",
    )
    made = duetime("key", "create", "billing", *options).json
    assert (made["scopes"], made["tenant"], made["rate"]) == (["read", "submit", "manage"], "acme", "50/1s")
    text = made.pop("key")
    duetime("key", "create", "other")
    assert [one for one in duetime("key", "list", "--json").json if one["prefix"] == made["prefix"]] == [made]
    assert [one["name"] for one in duetime("key", "list", "--tenant", "acme", "--json").json] == ["billing"]
    table = duetime("key", "list").out
    assert re.search(rf"{made['prefix']} +billing +acme +read,submit,manage +active ", table)
    assert text[14:] not in table
    assert duetime("key", "revoke", made["prefix"]).out == f"{made['prefix']} (billing of acme) is revoked\n"
    assert duetime("key", "revoke", text, "--json").json["revoked_at"] is not None, (
        "a whole key is taken for its prefix"
    )
    assert " revoked " in duetime("key", "list", "--tenant", "acme").out


def test_invalid_key_options_create_nothing(duetime: Duetime) -> None:
    for options, message, status in (
        (
            ["create", "a", "--scopes", "root"],
            "scopes: 'root' is not one of read, submit, manage, admin, work [input_invalid]",
            2,
        ),
        (["create", "a", "--scopes", ","], "scopes: must name at least one", 2),
        (["create", ""], "name:", 2),
        (["create", "a", "--expires-in", "soon"], "expires_in:", 2),
        (["create", "a", "--rate", "fast"], "rate: 'fast' is not a rate", 2),
        (["create", "a", "--tenant", "@x"], "tenant:", 2),
    ):
        done = duetime("key", *options)
        assert (done.status, message in done.err) == (status, True), done.err
    assert duetime("key", "list").out == "no keys: create one with `duetime key create NAME --scopes admin`\n"
    gone = duetime("key", "revoke", "0000000000")
    assert (gone.status, "key '0000000000'" in gone.err, "[key_not_found]" in gone.err) == (1, True, True)


def test_revoke_with_a_whole_key_does_not_print_it(duetime: Duetime) -> None:
    """The answer names only the prefix."""
    duetime("key", "create", "a")
    done = duetime("key", "revoke", "dt_0123456789_" + "s" * 43)
    assert (done.status, "sssss" in done.err) == (1, False)


def test_sync_app_has_the_calls_for_keys(folder: Path) -> None:
    app = dt.App("sqlite:///duetime.db")
    made = app.sync.keys.create("a", ["read"], expires_in="1d")
    listed = app.sync.keys()
    assert [key.prefix for key in listed] == [made.key.prefix]
    assert app.sync.keys.revoke(made.key.prefix).revoked_at is not None
    app.sync.close()


def test_key_list_shows_more_than_one_page(duetime: Duetime, folder: Path) -> None:
    async def make() -> None:
        app = dt.App("sqlite:///duetime.db")
        await app.open()
        await asyncio.gather(
            *(app.for_tenant(f"t{number % 7}").keys.create(f"k{number}") for number in range(1_100))
        )
        await app.close()

    asyncio.run(make())
    assert len({one["name"] for one in duetime("key", "list", "--json").json}) == 1_100


def test_signing_secret_of_a_host_is_printed(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = duetime("key", "signing-secret", "https://agent.example/run")
    assert (refused.status, "DUETIME_SECRET_KEYS" in refused.err) == (1, True)
    monkeypatch.setenv("DUETIME_SECRET_KEYS", "k1:" + "QUFB" * 11)
    shown = duetime("key", "signing-secret", "https://agent.example/run")
    assert shown.out.startswith("whsec_")
    assert duetime("key", "signing-secret", "https://agent.example").out == shown.out
    assert duetime("key", "signing-secret", "https://other.example").out != shown.out
