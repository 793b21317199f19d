"""The table for people and the JSON for programs."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures import Figure, Sheet
from bench.targets import Judge, Verdict

HEADINGS = ("figure", "measured", "bare store", "of bare", "verdict", "must", "reach for", "remark")
RIGHT = {1, 2, 3}


def table(sheet: Sheet, judge: Judge) -> str:
    """One block for each run (a store, or the peers' harness)."""
    blocks = []
    for run in dict.fromkeys(figure.key.split(".")[0] for figure in sheet):
        rows = [_row(figure, judge) for figure in sheet if figure.key.startswith(f"{run}.")]
        blocks.append(f"{run}\n{_aligned([HEADINGS, *rows])}")
    return "\n\n".join([*blocks, _summary(sheet, judge)])


def conditions(about: Mapping[str, Any]) -> str:
    """What a reader must know before relying on a figure."""
    busy = about["load"][0] > about["cores"] / 4
    warning = (
        ": others were at work, believe the ratios to the bare store rather than the figures" if busy else ""
    )
    return (
        f"{about['cores']} cores, {about['machine']}, Python {about['python']}, load {about['load'][0]} "
        f"when it began{warning}"
    )


def machine() -> dict[str, Any]:
    load = os.getloadavg()
    return {
        "cores": os.cpu_count(), "machine": platform.machine(), "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version, "load": [round(value, 2) for value in load],
    }  # fmt: skip


def write_json(
    path: Path,
    sheet: Sheet,
    judge: Judge,
    peers: Mapping[str, float],
    failures: Mapping[str, str],
    about: Mapping[str, Any],
) -> None:
    figures = {figure.key: _record(figure, judge) for figure in sheet}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"about": about, "figures": figures, "peers": peers, "failures": failures}, indent=1)
        + "\n"
    )


def _record(figure: Figure, judge: Judge) -> dict[str, Any]:
    judged = {"must": judge.must(figure), "reach": judge.reach(figure), "verdict": judge.verdict(figure)}
    return {**asdict(figure), "of_raw": figure.of_raw, **judged}


def _row(figure: Figure, judge: Judge) -> tuple[str, ...]:
    bare = "" if figure.raw is None else _number(figure.raw, figure.unit)
    ratio = "" if figure.of_raw is None else f"{figure.of_raw:.2f}"
    measured = _number(figure.value, figure.unit)
    return (
        figure.name,
        measured,
        bare,
        ratio,
        judge.verdict(figure).value,
        judge.must(figure),
        judge.reach(figure),
        figure.remark,
    )


def _number(value: float, unit: str) -> str:
    if not unit or value >= 100:
        return f"{value:,.0f}{unit}"
    return f"{value:.3g}{unit}"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in RIGHT else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _summary(sheet: Sheet, judge: Judge) -> str:
    verdicts = [judge.verdict(figure) for figure in sheet]
    count = {verdict: verdicts.count(verdict) for verdict in (Verdict.REACHED, Verdict.MET, Verdict.MISSED)}
    return (
        f"{count[Verdict.REACHED]} reached what they reach for, {count[Verdict.MET]} met what they must, "
        f"{count[Verdict.MISSED]} missed it"
    )
