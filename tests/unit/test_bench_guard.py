"""The comparison of `make bench-guard`; counting itself needs valgrind."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest

from bench.guard import __main__ as guard
from bench.guard.callgrind import dumps

KNOWN = {"sqlite": {"submit": 1_000.0, "claim": 100.0}}


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def test_step_that_costs_more_than_three_percent_more_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    now = {"sqlite": {"submit": 1_029.0, "claim": 103.1}, "postgres": {"server": 900.0}}
    assert guard.compare({**KNOWN, "postgres": {"server": 1.0}}, now) == ["sqlite claim"]
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split() == ["sqlite", "submit", "1,000", "1,029", "+2.9%"]
    assert shown[2].split() == ["sqlite", "claim", "100", "103", "+3.1%", "!"]


def test_baseline_of_another_python_is_refused() -> None:
    setting = guard.setting()
    guard.check({"setting": setting})
    with pytest.raises(guard.Refused, match=r"the baseline is of python 2\.7, .*ARGS=--update"):
        guard.check({"setting": {**setting, "python": "2.7"}})


def test_missing_valgrind_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["bench-guard", "--update"])
    assert guard.main() == 2
    assert capsys.readouterr().err == (
        "bench-guard: valgrind is missing: install it, for example with `apt install valgrind`\n"
    )


def test_dumps_are_read_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "callgrind.out.1").write_text("desc: Trigger: Client Request: submit\n\nfn=(1)\ntotals: 12\n")
    (tmp_path / "callgrind.out").write_text("desc: Trigger: Program termination\ntotals: 3\n")
    assert dumps(tmp_path) == {"submit": 12}
