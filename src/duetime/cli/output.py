"""Tables, records and JSON on stdout. Colours only on a terminal; nothing is cut off; a narrow terminal gets records, not a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime.cli.escape import visible, visible_lines

UNLIMITED = 100_000  # columns; what is piped into another program must not depend on a window
STYLES = {
    "succeeded": "green", "running": "cyan", "queued": "cyan", "dead": "red", "cancelled": "yellow", "skipped": "yellow",
    "ok": "green", "warn": "yellow", "alive": "green", "expired": "yellow", "paused": "yellow", "active": "green",
}  # fmt: skip


class Field(NamedTuple):
    name: str
    value: str


def say(text: str = "") -> None:
    typer.echo(visible_lines(text))


def show_json(value: Any) -> None:
    """ASCII only: what JSON leaves unescaped could still move a terminal's cursor."""
    typer.echo(json.dumps(value, indent=2))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str, console: Console | None = None) -> None:
    """`empty` is said when there are no rows."""
    if not rows:
        say(empty)
        return
    out = console or make_console()
    table = _table(columns, rows)
    # The least width that rich speaks of is that of the longest words: it would cut off the rest.
    if out.measure(table, options=out.options.update(max_width=UNLIMITED)).maximum <= out.width:
        out.print(table)
        return
    for row in rows:
        show_record([Field(*pair) for pair in zip(columns, row, strict=True)], out)
        out.print()


def show_record(fields: Sequence[Field], console: Console | None = None) -> None:
    """Name and value, one under another; long values are wrapped, not cut."""
    out = console or make_console()
    indent = max(len(field.name) for field in fields) + 2
    for name, value in fields:
        first, *more = visible_lines(value).split("\n")
        style = STYLES.get(first.split(" ")[0], "")
        out.print(Text.assemble((name.ljust(indent), "bold"), (first, style)), soft_wrap=True)
        for rest in more:
            out.print(Text(f"{'':{indent}}{rest}"), soft_wrap=True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """What to do about it is decided in one place, for everything that writes."""
        raise BrokenPipeError


def make_console() -> Console:
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return _Console(width=None if terminal else UNLIMITED, highlight=False, markup=False, emoji=False)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: str) -> Text:
    return Text(visible(value), style=STYLES.get(value, ""))
