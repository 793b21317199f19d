"""What `mypy --strict` accepts and refuses in programs that use Duetime."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_overloads, get_type_hints

import pytest

from duetime.engine.submit.build import JOB_OPTIONS
from duetime.engine.submit.schedules import SCHEDULE_OPTIONS, ScheduleOptions
from duetime.task import Task

ROOT = Path(__file__).parents[2]
# Every line with the comment `# error: code` must have this error, and no other line any.
PROGRAM = """
from datetime import UTC, datetime
from typing import Annotated, Any

import duetime as dt

app = dt.App("memory://")
client: type[dt.Client] = dt.Cleint  # error: attr-defined


def pool() -> str:
    return "pool"


@app.task("ship", delivery="at_most_once", unique=dt.Unique(on_conflict="replace"))
async def ship(ctx: dt.Context, order_id: int, note: str = "") -> str:
    return note


@app.task("count")
def count(numbers: list[int], *, db: Annotated[str, dt.Use(pool)] = dt.INJECTED) -> int:
    return len(numbers)


@app.task("anything")
def anything(value: Any) -> None: ...


@app.task("no arguments", delivery="once")  # error: arg-type
def nothing(ctx: dt.Context) -> None: ...


dt.Unique(on_conflict="ignore")  # error: arg-type
dt.NewJob(ship, {"order_id": 1}, delivery="once")  # error: arg-type


async def submits(job_options: dict[str, Any]) -> None:
    await ship.submit(order_id=1)
    await ship.submit(1, "fragile")
    await ship.submit(order_id=1, note="fragile")
    await ship.submit(ordre=1)  # error: call-overload
    await ship.submit(order_id="no")  # error: call-overload
    await ship.submit()  # error: call-overload
    await ship.submit(order_id=1, delai="5m")  # error: call-overload
    await ship.submit(order_id=1, delay="5m", priority=8, connection=object())
    await ship.submit(order_id=1, at=datetime(2030, 1, 1, tzinfo=UTC))
    await ship.submit(order_id=1, delay=5)  # error: call-overload
    await ship.submit(order_id=1, priority="high")  # error: call-overload
    await ship.submit(order_id=1, delivery="at_most_once")
    await ship.submit(order_id=1, delivery="once")  # error: call-overload
    await ship.submit(order_id=1, on_conflict="reschedule", unique=True)
    await ship.submit(order_id=1, on_conflict="ignore")  # error: call-overload
    await ship.submit(order_id=1, **job_options)
    await count.submit(numbers=[1, 2])
    await count.submit(numbers=["one"])  # error: list-item
    await anything.submit(value=1)
    await nothing.submit()
    await nothing.submit(order_id=1)  # error: call-overload


async def calls(ctx: dt.Context) -> str:
    count([1])
    count("one")  # error: call-overload
    return await ship(ctx, 1)


async def schedules() -> None:
    daily = dt.Every("1d")
    await app.schedule("a", ship, daily, payload={"order_id": 1}, overlap="skip", missed="all")
    await app.schedule("a", ship, daily, overlap=dt.Overlap.SKIP, missed=dt.Missed("latest", within="6h"))
    await app.schedule("a", ship, daily, overlap="skp")  # error: arg-type
    await app.schedule("a", ship, daily, missed="none")  # error: arg-type
    await app.schedule("a", ship, daily, delivery="once")  # error: arg-type
    await app.schedule("a", ship, daily, on_conflict="keep")
    await app.schedule("a", ship, daily, on_conflict="ignore")  # error: arg-type
    await app.schedule("a", ship, daily, overlapp="skip")  # error: call-arg
    await app.declare_schedules("shop", [dt.NewSchedule("a", ship, daily, overlap="queue")])
    dt.NewSchedule("a", ship, daily, overlap="skp")  # error: arg-type
    app.sync.schedule("a", ship, daily, overlap="skp")  # error: arg-type
"""


@pytest.mark.slow
def test_strict_mypy_refuses_wrong_calls_and_accepts_right_ones(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT / 'src'}\n")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--hide-error-context", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    lines = PROGRAM.splitlines()
    expected = [
        (str(number), line.partition("# error: ")[2])
        for number, line in enumerate(lines, 1)
        if "# error: " in line
    ]
    assert found == expected, done.stdout + done.stderr


def test_every_option_of_submit_is_typed() -> None:
    options = {*JOB_OPTIONS, "connection"}
    typed = {name for overload in get_overloads(Task.submit) for name in overload.__annotations__}
    assert typed - {"arguments", "named", "return"} == options


def test_every_option_of_a_schedule_is_typed() -> None:
    assert get_type_hints(ScheduleOptions).keys() == set(SCHEDULE_OPTIONS)
