"""Compares what one job costs with the committed baseline: `make bench-guard`, see CONTRIBUTING.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.guard import JOBS, STEPS
from bench.guard.callgrind import dumps
from bench.processes import family_cpu_seconds
from tests.servers.postgres import PostgresServer

BASELINE = Path(__file__).with_name("baseline.json")
MAX_GROWTH = 0.03
# Hints to other processes are sent by the clock, not by the job: the same program differs by 6 %.
UNSTEADY = {("postgres", "submit"): 0.08}
STORES = ("sqlite", "postgres")
ADDITIONS = 1_000
ROUNDS = 5  # without valgrind, for the processor time of the server
UPDATE = "or write a new one: make bench-guard ARGS=--update"
# The same order of sets and dicts in each run, and one thread at a time.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
Figures = dict[str, dict[str, float]]


class Refused(Exception):
    """The comparison would mean nothing."""


def setting() -> dict[str, str]:
    """What the baseline holds for."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
    }


def measure() -> Figures:
    found: Figures = {}
    for store in STORES:
        with _place(store) as (url, server), tempfile.TemporaryDirectory(prefix="duetime-guard-") as name:
            _run(_counted(Path(name)), url)
            counted = dumps(Path(name))
            found[store] = {step: counted[step] / JOBS for step in STEPS}
            if server is not None:
                found[store]["server"] = _server_time(url, server)
    return found


def compare(baseline: Figures, now: Figures) -> list[str]:
    """Prints the table. Returns the steps that became dearer."""
    dearer = []
    print(f"{'instructions per job':28} {'baseline':>10} {'now':>10} {'difference':>11}")
    for store, steps in now.items():
        for step, figure in steps.items():
            known = baseline.get(store, {}).get(step)
            growth = 0.0 if known is None else figure / known - 1
            is_dearer = step != "server" and growth > UNSTEADY.get((store, step), MAX_GROWTH)
            dearer += [f"{store} {step}"] if is_dearer else []
            label = f"{store} {step}" if step != "server" else f"{store} server *"
            shown = "-" if known is None else f"{known:,.0f}"
            print(f"{label:28} {shown:>10} {figure:>10,.0f} {growth:>+10.1%}{' !' if is_dearer else ''}")
    print("* processor time, in additions of this interpreter; not judged")
    return dearer


def check(baseline: dict[str, Any] | None) -> None:
    if platform.machine() != "x86_64":
        raise Refused(f"instructions are counted on x86_64 only, this is {platform.machine()}")
    if shutil.which("valgrind") is None:
        raise Refused("valgrind is missing: install it, for example with `apt install valgrind`")
    if baseline is not None and baseline["setting"] != setting():
        raise Refused(
            f"the baseline is of {_text(baseline['setting'])}, this is {_text(setting())}: use that, {UPDATE}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-guard", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the baseline instead of comparing")
    given = parser.parse_args()
    try:
        baseline = None if given.update else json.loads(BASELINE.read_text())
        check(baseline)
    except FileNotFoundError:
        print(f"bench-guard: there is no baseline yet, {UPDATE.removeprefix('or ')}", file=sys.stderr)
        return 2
    except Refused as problem:
        print(f"bench-guard: {problem}", file=sys.stderr)
        return 2
    now = measure()
    if baseline is None:
        rounded = {store: {step: round(one) for step, one in steps.items()} for store, steps in now.items()}
        BASELINE.write_text(json.dumps({"setting": setting(), "figures": rounded}, indent=2) + "\n")
    dearer = compare({} if baseline is None else baseline["figures"], now)
    if dearer:
        print(f"\nbench-guard: too much dearer: {', '.join(dearer)}", file=sys.stderr)
    return 1 if dearer else 0


@contextmanager
def _place(store: str) -> Iterator[tuple[str, PostgresServer | None]]:
    """A fresh store, and its server if it has one."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="duetime-guard-") as folder:
            yield f"sqlite:///{folder}/guard.db", None
        return
    with PostgresServer() as server:
        yield server.create_database("guard"), server


def _counted(folder: Path) -> list[str]:
    out = f"--callgrind-out-file={folder / 'callgrind.out'}"
    return ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", out]


def _run(before: list[str], url: str, rounds: int = 0) -> None:
    command = [*before, sys.executable, "-m", "bench.guard.steps", url, str(rounds)]
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench-guard: {' '.join(command)} failed\n{done.stderr[-2_000:]}")


def _server_time(url: str, server: PostgresServer) -> float:
    """Per job, in additions of this interpreter just before and after: hosts change their speed."""
    loop = _loop()
    began = family_cpu_seconds(server.pid)
    _run([], url, ROUNDS)
    used = family_cpu_seconds(server.pid) - began
    return used / (ROUNDS * JOBS) / ((loop + _loop()) / 2) * ADDITIONS


def _loop() -> float:
    """The processor time of so many additions: the shortest of a few."""
    return min(_time(sum, range(ADDITIONS)) for _ in range(200))


def _time(function: Any, argument: Any) -> float:
    began = time.process_time_ns()
    function(argument)
    return (time.process_time_ns() - began) / 1e9


def _text(setting: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


if __name__ == "__main__":
    sys.exit(main())
