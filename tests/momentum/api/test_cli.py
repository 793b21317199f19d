"""The command line: the demo from its first start to a published post, keys, import, log, errors."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from momentum.cli.program import program
from tests.momentum.api.scene import Client, Running, soon
from tests.momentum.media import samples

TIMEOUT = 120.0
PATHS = ":".join(path for path in sys.path if path)


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MOMENTUM_")}
    return {**clean, "XDG_CONFIG_HOME": str(folder / "config"), "PYTHONPATH": PATHS}


class CommandLine:
    """Runs a command in this process, in a folder of its own."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._capsys = folder, capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))

    def __call__(self, *words: str, expect: int = 0) -> str:
        """What it writes; the errors if it fails."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            program(list(words), prog_name="momentum")
        written = self._capsys.readouterr()
        assert ended.value.code == expect, written
        return written.out if expect == 0 else written.err


@pytest.fixture
def momentum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capsys)


@contextmanager
def serving_demo(folder: Path) -> Iterator[str]:
    """The address of `momentum serve --demo`."""
    log = folder / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "momentum", "serve", "--demo", "--port", "0"],
            cwd=folder,
            env=environment(folder),
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + TIMEOUT
        while (found := re.search(r"^Momentum +(\S+)$(?s:.*)Ctrl-C", log.read_text(), re.M)) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0, log.read_text()


@pytest.mark.slow
async def test_demo_publishes_a_post_and_remembers_it(tmp_path: Path) -> None:
    with serving_demo(tmp_path) as address:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            client = Client(Running(None, address), "default", "", http)  # type: ignore[arg-type]
            status = await client.get("/status")
            assert (status["demo"], status["auth"]) == (True, "none")
            member, _ = await client.connect()
            picture = await client.upload(samples.image(), "picture.png")
            body = {
                "account_id": member["id"],
                "text": "My first post",
                "media": [{"media_id": picture["id"]}],
                "scheduled_at": soon(0.5),
            }
            post = await client.post("/posts", body, 201)
            published = await client.until(post["id"], "published")
            async with http.get(published["url"]) as response:
                assert "My first post" in await response.text()
            async with http.get(address) as response:
                assert response.status in (200, 503)  # whether the page is built or not
    data = tmp_path / "momentum-data"
    key_file = tmp_path / "config" / "momentum" / "secret.keys"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = key_file.read_bytes().strip()
    stored = [file for file in data.rglob("*") if file.is_file() and file.parent.name != "linkedin"]
    assert all(key not in file.read_bytes() for file in stored)
    assert [path for path in (data / "media").rglob("*") if path.is_file()]
    for path in (data, *data.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_keys_are_created_listed_and_revoked(momentum: CommandLine) -> None:
    key = momentum("key", "create", "content team", "--tenant", "marketing").strip()
    assert key.startswith("mo_")
    listed = momentum("key", "list")
    assert "marketing  content team  valid" in listed
    assert key not in listed
    momentum("key", "revoke", listed.split()[0])
    assert "revoked" in momentum("key", "list")
    assert momentum("log", "--csv").startswith("post_id,account_id,number")
    error = momentum("key", "revoke", "key_1", expect=1)
    assert error.startswith("error: key: there is no valid key 'key_1'")
    assert error.strip().endswith("[not_found]")


def test_errors_are_one_line_with_a_code(momentum: CommandLine) -> None:
    for words, code in (
        (("serve", "--auth", "maybe"), "config_invalid"),
        (("serve", "--host", "0.0.0.0"), "config_invalid"),
        (("worker", "--database", "mysql://x/y"), "config_invalid"),
        (("log", "--outcome", "never"), "usage"),
        (("nothing",), "usage"),
    ):
        error = momentum(*words, expect=2)
        assert error.count("\n") == 1, error
        assert error.strip().endswith(f"[{code}]"), error


def test_import_and_doctor(momentum: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("account,text\nme,Hello\n")
    momentum("key", "create", "someone")  # makes the database
    error = momentum("posts", "import", "posts.csv", expect=1)
    assert "line 2: account: 'me' is not an account" in error
    error = momentum("doctor", expect=2)
    assert "[config_invalid]" in error
    (tmp_path / "loose.keys").write_text("key")
    (tmp_path / "loose.keys").chmod(0o644)
    error = momentum("doctor", "--key-file", "loose.keys", expect=2)
    assert "chmod 600" in error


def test_help_shows_examples(momentum: CommandLine) -> None:
    assert "momentum serve --demo" in momentum("--help")


@pytest.mark.parametrize(
    "words",
    [
        "posts show post_1",
        "posts list",
        "posts cancel post_1",
        "posts publish post_1",
        "posts import posts.csv",
        "log",
        "doctor",
        "key list",
        "key revoke key_1",
    ],
)
def test_command_that_needs_a_database_creates_none(momentum: CommandLine, words: str) -> None:
    (momentum.folder / "posts.csv").write_text("account,text\n")
    before = set(momentum.folder.rglob("*"))
    error = momentum(*words.split(), expect=2)
    assert "database: there is no file" in error
    assert "momentum serve" in error
    assert set(momentum.folder.rglob("*")) == before


def test_database_of_another_program_is_named(momentum: CommandLine) -> None:
    (momentum.folder / "momentum.db").touch()
    assert "it has no tables of Momentum" in momentum("posts", "list", expect=2)
    assert not (momentum.folder / "config").exists()
