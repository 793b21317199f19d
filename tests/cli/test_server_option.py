"""`duetime --server`: whether a command uses it, the API key, and errors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from duetime.cli.backend import key_of, uses_server
from duetime.cli.store_backend import StoreBackend
from duetime.config_sources import load
from duetime.errors import ConfigError
from duetime.model.views import EventView
from duetime.remote import AsyncClient
from tests.cli.conftest import Duetime
from tests.cli.node import COMMAND
from tests.cli.served import served

SERVER = "http://127.0.0.1:1"


@pytest.fixture
def url(folder: Path, duetime: Duetime) -> Iterator[str]:
    duetime("migrate", "--store", f"sqlite:///{folder}/there.db")
    with served(f"sqlite:///{folder}/there.db") as address:
        yield address


@pytest.mark.parametrize(
    ("flags", "environment", "there"),
    [
        ({}, {}, False),
        ({"server": SERVER}, {}, True),
        ({}, {"DUETIME_SERVER": SERVER}, True),
        ({}, {"DUETIME_SERVER": SERVER, "DUETIME_STORE": "memory://"}, True),
        ({"server": SERVER}, {"DUETIME_STORE": "memory://", "DUETIME_APP": "a:b"}, True),
        ({"store": "memory://"}, {"DUETIME_SERVER": SERVER}, False),
        ({"app": "a:b"}, {"DUETIME_SERVER": SERVER}, False),
    ],
)
def test_command_line_wins_over_a_server_from_the_environment(
    flags: dict[str, str], environment: dict[str, str], there: bool
) -> None:
    assert uses_server(load(flags, environment)) is there


@pytest.mark.parametrize("other", [["--store", "memory://"], ["--app", "a:b"]])
def test_server_and_store_together_are_refused(duetime: Duetime, other: list[str]) -> None:
    done = duetime("--server", SERVER, *other, "job", "list")
    assert (done.status, "use either --server or" in done.err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ["serve"],
        ["migrate"],
        ["worker", "tasks:app"],
        ["backup", "copy.db"],
        ["restore", "copy.db", "--to", "sqlite:///b.db"],
        ["adopt", "--plan"],
        ["copy", "--to", "sqlite:///b.db"],
        ["copy", "--from", "sqlite:///duetime.db", "--to", "sqlite:///b.db"],
        ["archive", "--to", "."],
    ],
)
def test_commands_that_need_the_store_refuse_server(duetime: Duetime, command: list[str]) -> None:
    duetime("migrate")
    done = duetime("--server", SERVER, *command)
    assert done.status in (1, 2)
    assert "works on the store itself" in done.err + done.out


def test_server_from_the_environment_does_not_affect_store_commands(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_SERVER", SERVER)
    assert duetime("migrate").status == 0


def test_commands_reach_the_server_and_touch_no_file_here(
    duetime: Duetime, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert duetime("--server", url, "job", "submit", "send", "--queue", "mail").status == 0
    monkeypatch.setenv("DUETIME_SERVER", url)
    assert [job["queue"] for job in duetime("job", "list", "--json").json] == ["mail"]
    assert not (folder / "duetime.db").exists()


def test_api_key_is_accepted_from_each_source(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{folder}/kept.db"
    key = duetime("--store", store, "key", "create", "me", "--scopes", "read").out.strip()
    (folder / "key").write_text(f"{key}\n")
    with served(store, auth="keys") as address:
        assert duetime("--server", address, "--key", key, "job", "list").out == "no jobs\n"
        assert (
            duetime("--server", address, "--key-file", str(folder / "key"), "job", "list").out == "no jobs\n"
        )
        refused = duetime("--server", address, "--key", key, "job", "submit", "send")
        assert (refused.status, "[scope_missing]" in refused.err) == (1, True)
        assert duetime("--server", address, "job", "list").status == 1
        monkeypatch.setenv("DUETIME_KEY", key)
        assert duetime("--server", address, "job", "list").out == "no jobs\n"
        wrong = duetime("--server", address, "--key", f"{key[:-4]}xxxx", "job", "list")
        assert (wrong.status, wrong.err.count("\n")) == (1, 1)
        assert key[-8:-4] not in wrong.err


def test_api_key_wins_over_key_file(folder: Path) -> None:
    (folder / "key").write_text("from-file")
    assert key_of(load({"key_file": str(folder / "key")}, {})) == "from-file"
    assert key_of(load({"key_file": str(folder / "key"), "key": "k"}, {})) == "k"
    assert key_of(load({}, {})) is None


HERE, TYPED = {"DUETIME_SERVER": SERVER}, {"server": SERVER}


@pytest.mark.parametrize("folder_file", ["duetime.toml", ".env"])
def test_key_is_sent_only_to_a_server_of_the_same_or_a_closer_source(folder: Path, folder_file: str) -> None:
    """A folder may come from anyone: it must not get the user's key."""
    server = f'server = "{SERVER}"\n' if folder_file == "duetime.toml" else f"DUETIME_SERVER={SERVER}\n"
    (folder / folder_file).write_text(server)
    (folder.parent / "key").write_text("outside")
    for flags, variables in (
        ({}, {"DUETIME_KEY": "k"}),
        ({}, {"DUETIME_KEY_FILE": str(folder.parent / "key")}),
        ({"key": "k"}, {}),
    ):
        with pytest.raises(ConfigError, match=f"is not sent to {SERVER}, which .*{folder_file} names"):
            key_of(load(flags, variables))
    with pytest.raises(ConfigError, match="--key"):
        key_of(load({"key": "k"}, HERE))
    assert key_of(load({}, {**HERE, "DUETIME_KEY": "k"})) == "k"
    assert key_of(load(TYPED, {"DUETIME_KEY": "k"})) == "k"
    (folder / folder_file).unlink()
    (folder / "named.toml").write_text(f'server = "{SERVER}"')
    assert key_of(load({"key": "k"}, {}, folder / "named.toml")) == "k", "the user named the file"
    assert key_of(load({}, {"DUETIME_KEY": "k", "DUETIME_CONFIG": "named.toml"})) == "k"


def test_folder_may_name_only_key_files_inside_of_it(folder: Path) -> None:
    (folder.parent / "key").write_text("outside")
    (folder / "key").write_text("inside")
    (folder / "link").symlink_to(folder.parent / "key")
    for name in ("../key", "link", str(folder.parent / "key")):
        (folder / "duetime.toml").write_text(f'server = "{SERVER}"\nkey_file = "{name}"')
        with pytest.raises(ConfigError, match="is outside of this folder"):
            key_of(load({}, {}))
    (folder / "duetime.toml").write_text(f'server = "{SERVER}"\nkey_file = "key"')
    assert key_of(load({}, {})) == "inside"


def test_completion_sends_no_key_to_a_server_of_the_folder(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        (folder / "duetime.toml").write_text(f'server = "http://127.0.0.1:{listener.getsockname()[1]}"')
        monkeypatch.setenv("DUETIME_KEY", "dt_secret")
        monkeypatch.setenv("_DUETIME_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "duetime schedule pause n")
        monkeypatch.setenv("COMP_CWORD", "3")
        assert duetime().out.strip() == ""
        with pytest.raises(BlockingIOError):  # there was no connection
            listener.accept()


def test_unreadable_key_file_is_refused(duetime: Duetime) -> None:
    done = duetime("--server", SERVER, "--key-file", "nowhere", "job", "list")
    assert (done.status, "key_file: nowhere cannot be read" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("server", "status", "message"),
    [(SERVER, 1, "[service_unreachable]"), ("nonsense", 2, "server: "), ("ftp://x", 2, "server: ")],
)
def test_unreachable_or_invalid_server_is_one_line_of_error(
    duetime: Duetime, server: str, status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.remote.request.FIRST_RETRY_DELAY", 0.001)
    done = duetime("--server", server, "job", "list")
    assert (done.status, message in done.err, done.err.count("\n")) == (status, True, 1)


def test_completion_uses_the_server(duetime: Duetime, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_SERVER", url)
    duetime("schedule", "add", "nightly", "report.build", "--every", "1h")

    def complete(words: str) -> list[str]:
        monkeypatch.setenv("_DUETIME_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return duetime().out.split()

    assert complete("duetime schedule pause n") == ["nightly"]
    assert complete("duetime why n") == ["nightly"]
    assert complete("duetime job submit rep") == ["report.build"]
    assert complete("duetime job list --target @") == ["@http"]
    assert complete("duetime events --types job,no") == ["job,node"]
    monkeypatch.setenv("DUETIME_SERVER", SERVER)
    assert complete("duetime schedule pause n") == []


@pytest.mark.parametrize("over_http", [False, True])
def test_events_are_printed_as_they_happen(duetime: Duetime, url: str, folder: Path, over_http: bool) -> None:
    place = ["--server", url] if over_http else ["--store", f"sqlite:///{folder}/there.db"]
    words = [COMMAND, *place, "events", "--types", "schedule", "--count", "2", "--json"]
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        number, deadline = 0, time.monotonic() + 60
        while following.poll() is None and time.monotonic() < deadline:  # until it is subscribed
            duetime("--server", url, "schedule", "add", f"s{number}", "t", "--every", "1h")
            number += 1
        out, err = following.communicate(timeout=60)
    assert following.returncode == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert len(events) == 2
    assert events[0]["kind"] == "schedule", "a reset says nothing to a reader that just began"
    assert events[1]["kind"] in ("schedule", "reset")


@pytest.mark.parametrize("over_http", [False, True])
def test_resets_are_printed_after_the_first_event(
    duetime: Duetime, monkeypatch: pytest.MonkeyPatch, over_http: bool
) -> None:
    kinds = ["reset", "reset", "job", "reset", "job"]

    async def events(*_: object, **more: object) -> AsyncIterator[EventView]:
        for number, kind in enumerate(kinds, 1):
            yield EventView(id=number, kind=kind, data={"action": kind})

    duetime("migrate")
    monkeypatch.setattr(AsyncClient if over_http else StoreBackend, "events", events)
    place = ["--server", SERVER] if over_http else []
    begun = duetime(*place, "events", "--count", "3", "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in begun] == [3, 4, 5]
    resumed = duetime(*place, "events", "--after", "0", "--count", "3", "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in resumed] == [1, 2, 3]


def test_closed_pipe_is_not_an_error(duetime: Duetime, folder: Path) -> None:
    """As in `duetime job list | head -1`: the reader has seen enough."""
    for _ in range(3):
        duetime("job", "submit", "send", "--payload", json.dumps({"text": "x" * 60_000}))
    script = (
        "import subprocess, sys; "
        f"sys.exit(subprocess.run({[COMMAND, 'job', 'list', '--json', '--limit', '1000']!r}).returncode)"
    )
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
