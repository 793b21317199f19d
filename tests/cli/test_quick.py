"""Start-up: `duetime --help` imports nothing heavy; completion offers stored names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer import testing
from typer.main import get_command

import duetime as dt
from duetime.cli.program import COMMANDS, load_command
from tests.cli.conftest import Duetime

HELP = """
import sys
from duetime.cli import main
try:
    main()
except SystemExit as left:
    assert left.code == 0
print("imported:", *sorted(sys.modules))
"""
INTERRUPTED = """
import sys
from importlib.abc import MetaPathFinder

class CtrlC(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "duetime.cli.program":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from duetime.cli import main
main(["--help"])
"""
APP = {"sqlite3", "duetime.app", "duetime.remote", "duetime.store", "duetime.public"}


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", HELP, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("imported:")[2].split())


def test_help_imports_nothing_heavy() -> None:
    imported = imported_by("--help")
    assert "duetime.cli.program" in imported
    assert not [name for name in imported if name.startswith("duetime.cli.commands.")]
    assert imported.isdisjoint({"rich", "rich.console", "asyncio", "msgspec", "zoneinfo", *APP})


@pytest.mark.parametrize("words", [("job", "list"), ("schedule", "show"), ("queue", "pause"), ("why",)])
def test_help_of_a_command_imports_neither_app_nor_client(words: tuple[str, ...]) -> None:
    assert imported_by(*words, "--help").isdisjoint(APP)


def test_a_name_of_the_library_is_looked_up_once() -> None:
    assert dt.NewJob is vars(dt)["NewJob"]


def test_ctrl_c_while_the_command_line_is_imported_is_quiet() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_package_can_be_run_as_a_module() -> None:
    def wrong(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "duetime", *words], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    assert "Did you mean 'list'? See `python -m duetime job --help`" in wrong("job", "lis")
    misplaced = wrong("job", "list", "--server", "http://x")
    assert "write `python -m duetime --server ... job list ...`" in misplaced


def test_closed_stdin_is_empty() -> None:
    """As under some supervisors."""
    line = '"$0" -m duetime job submit report --payload - <&-'
    done = subprocess.run(["sh", "-c", line, sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("error: payload: is not JSON")) == (2, True), done.stderr


def test_completion_offers_stored_names(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """What bash offers after these words and TAB."""

    def complete(words: str) -> list[str]:
        monkeypatch.setenv("_DUETIME_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        offered = duetime().out.split()
        monkeypatch.delenv("_DUETIME_COMPLETE")
        return offered

    duetime("job", "submit", "report.build", "--queue", "mail")
    duetime("job", "submit", "report.send", "--queue", "main")
    duetime("schedule", "add", "nightly", "t", "--every", "1h")
    duetime("schedule", "add", "noon", "t", "--every", "1h")
    assert complete("duetime sch") == ["schedule"]
    assert complete("duetime job list --state d") == ["dead"]
    assert "Europe/Berlin" in complete("duetime schedule preview --tz Europe/B")
    assert complete("duetime schedule show n") == ["nightly", "noon"]
    assert complete("duetime queue pause m") == ["mail", "main"]
    assert complete("duetime job list --queue mai") == ["mail", "main"]
    assert complete("duetime worker tasks:app --queues main,mail") == ["main,mail"]
    assert complete("duetime job submit report.") == ["report.build", "report.send"]
    assert complete("duetime schedule add weekly t") == ["t"]
    assert complete("duetime job submit t --on-conflict re") == ["replace", "reschedule"]
    assert complete("duetime --store sqlite:///missing.db schedule show n") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(duetime: Duetime, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(testing, "_get_command", get_command)  # the variable is read when commands are built
    done = duetime("--show-completion", shell)
    assert done.status == 0, done.err
    assert "_DUETIME_COMPLETE" in done.out


def test_each_command_loads_and_has_the_help_of_the_overview() -> None:
    for name, text in COMMANDS.items():
        command = load_command(name)
        assert command.name == name
        assert command.help
        assert text == command.help or not hasattr(command, "commands"), (
            f"{name}: the group's help and the overview differ"
        )
