"""Exit status and the one line of every error."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from duetime.cli.program import status_of
from duetime.cli.store_backend import StoreBackend
from duetime.errors import (
    ConfigError,
    InvalidInput,
    NeverFires,
    PayloadTooLarge,
    ScheduleNotFound,
    StoreUnavailable,
)
from duetime.version import VERSION
from tests.cli.conftest import Duetime
from tests.cli.node import COMMAND


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (InvalidInput("f", "m"), 2),
        (ConfigError("m"), 2),
        (NeverFires("f", "m"), 1),
        (PayloadTooLarge("f", "m"), 1),
        (ScheduleNotFound("m"), 1),
        (StoreUnavailable("m"), 1),
    ],
)
def test_exit_status_of_each_kind_of_error(problem: InvalidInput, status: int) -> None:
    assert status_of(problem) == status


def test_version_flag_prints_the_version(duetime: Duetime) -> None:
    assert duetime("--version").out == f"duetime {VERSION}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jub"], "No such command 'jub'. Did you mean 'job'? See `duetime --help` [usage]"),
        (["job", "shw"], "No such command 'shw'. Did you mean 'show'? See `duetime job --help` [usage]"),
        (["job", "show"], "Missing argument"),
        (["--colour"], "No such option: --colour"),
        (["job", "list", "--colour"], "No such option: --colour"),
        (
            ["job", "list", "--server", "http://x"],
            "--server goes before the command: write `duetime --server ... job list ...` [usage]",
        ),
        (["--json", "job", "list"], "--json goes after the command: write `duetime ... --json` [usage]"),
        (
            ["job", "submit", "charge", '{"customer": "c1"}'],
            "the task's arguments go after --payload: write `duetime job submit TASK --payload '{...}'` "
            "[usage]",
        ),
        (["job", "list", "--limit", "10001"], "Invalid value for '--limit'"),
        (["--store", "ftp://x", "job", "list"], "[store_unknown]"),
        (["job", "list", "--store", "sqlite:///no/such/folder/x.db"], "[config_invalid]"),
        (["--config", "nowhere.toml", "job", "list"], "nowhere.toml: cannot be read"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(duetime: Duetime, arguments: list[str], message: str) -> None:
    done = duetime(*arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_unanswered_question_names_the_yes_flag(duetime: Duetime) -> None:
    duetime("schedule", "add", "nightly", "report.build", "--every", "1d")
    done = duetime("schedule", "remove", "nightly")
    assert done.status == 1
    assert done.err.endswith("error: nothing was done: answer with y, or give --yes [aborted]\n")


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        (["job", "submit"], "duetime job submit [OPTIONS] [TASK|URL]"),
        (["job", "cancel"], "duetime job cancel [OPTIONS] [ID]..."),
        (["schedule", "preview"], "duetime schedule preview [OPTIONS] [NAME]"),
        (["schedule", "restore"], "duetime schedule restore [OPTIONS] NAME VERSION"),
        (["worker"], "duetime worker [OPTIONS] [MODULE:APP]"),
    ],
)
def test_help_names_arguments_as_manuals_do(duetime: Duetime, command: list[str], usage: str) -> None:
    done = duetime(*command, "--help")
    assert done.out.startswith(f"Usage: {usage}\n")
    assert not [python for python in ("<str>", "<int>", "<list") if python in done.out]


@pytest.mark.parametrize("group", [[], ["job"], ["schedule"], ["dead"], ["node"]])
def test_group_without_command_shows_its_help(duetime: Duetime, group: list[str]) -> None:
    done = duetime(*group)
    assert (done.status, "Commands:" in done.out) == (2, True)
    assert duetime(*group, "--help").status == 0


@pytest.mark.parametrize(
    "command", [["job", "list"], ["schedule", "list"], ["dead", "list"], ["node", "list"], ["simulate"]]
)
def test_reading_commands_create_no_file(duetime: Duetime, folder: Path, command: list[str]) -> None:
    done = duetime(*command)
    assert (done.status, "there is no file" in done.err) == (2, True)
    assert list(folder.iterdir()) == []


def test_migrate_creates_and_then_has_nothing_to_do(duetime: Duetime) -> None:
    assert duetime("migrate").out.startswith("schema 0 -> ")
    assert duetime("migrate").out.endswith(": nothing to do\n")
    assert duetime("job", "list").out == "no jobs\n"


@pytest.mark.parametrize(
    "arguments", [["--store", "sqlite:///x.db", "migrate"], ["migrate", "--store", "sqlite:///x.db"]]
)
def test_store_flag_works_before_and_after_the_command(
    duetime: Duetime, folder: Path, arguments: list[str]
) -> None:
    assert duetime(*arguments).status == 0
    assert (folder / "x.db").exists()
    assert not (folder / "duetime.db").exists()


def test_file_that_is_not_a_database_is_one_line_of_error(duetime: Duetime, folder: Path) -> None:
    (folder / "duetime.db").write_text("hello " * 1000)
    done = duetime("job", "list")
    assert (done.status, done.err.count("\n")) == (1, 1)


def raising(problem: BaseException) -> object:
    async def jobs(self: StoreBackend, **filters: object) -> object:
        raise problem

    return jobs


def test_internal_error_is_one_line_and_with_debug_a_traceback(
    duetime: Duetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    duetime("migrate")
    monkeypatch.setattr(StoreBackend, "jobs", raising(RuntimeError("oh\x1b no")))
    quiet, loud = duetime("job", "list"), duetime("--debug", "job", "list")
    assert quiet.err == (
        "error: unexpected RuntimeError: oh\\x1b no; run it with `duetime --debug` to see where [internal]\n"
    )
    assert (quiet.status, loud.status) == (1, 1)
    assert "Traceback (most recent call last)" in loud.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "words",
    [
        ["job", "list"],
        ["job", "list", "--json"],
        ["--version"],
        ["--help"],
        ["job", "submit", "t"],
        ["stats"],
    ],
)
def test_output_that_cannot_be_written_is_one_line(duetime: Duetime, folder: Path, words: list[str]) -> None:
    duetime("migrate")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, *words], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    problem = "the output cannot be written (No space left on device): make room"
    assert (done.returncode, problem in done.stderr, done.stderr.count("\n")) == (1, True, 1), done.stderr


def test_full_disk_of_a_named_file_is_not_about_the_output(
    duetime: Duetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: StoreBackend, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x.db")

    duetime("migrate")
    monkeypatch.setattr(StoreBackend, "jobs", fail)
    done = duetime("job", "list")
    assert (done.status, "x.db" in done.err, "output" in done.err) == (1, True, False), done.err


def test_ctrl_c_is_quiet(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    duetime("migrate")
    monkeypatch.setattr(StoreBackend, "jobs", raising(KeyboardInterrupt()))
    done = duetime("job", "list")
    assert (done.status, done.out, done.err) == (130, "", "")


def test_unavailable_store_exits_with_status_1(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    duetime("migrate")
    monkeypatch.setattr(StoreBackend, "jobs", raising(StoreUnavailable("the store is away: try again")))
    done = duetime("job", "list")
    assert (done.status, done.err) == (1, "error: the store is away: try again [store_unavailable]\n")
