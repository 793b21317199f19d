"""Tables, records and JSON on stdout. Colours only on a terminal; nothing is cut off; a narrow terminal
gets records, not a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime.cli.format import record_fields, visible, visible_lines
from duetime.model.views import to_json

UNLIMITED = 100_000  # columns: output into a pipe must not depend on a window
STYLES = {
    "succeeded": "green", "running": "cyan", "queued": "cyan", "dead": "red", "cancelled": "yellow",
    "skipped": "yellow", "ok": "green", "warn": "yellow", "alive": "green", "expired": "yellow",
    "paused": "yellow", "active": "green",
}  # fmt: skip

Value = TypeVar("Value")


def say(text: str = "") -> None:
    typer.echo(visible_lines(text))


def hint(text: str) -> None:
    """A line for people, on stderr: it does not get into what a script reads."""
    typer.echo(visible(text), err=True)


def show_json(value: Any) -> None:
    """ASCII only: characters that JSON leaves unescaped could still move a terminal's cursor."""
    typer.echo(json.dumps(to_json(value), indent=2))


def show(value: Value, as_json: bool, text: Callable[[Value], None]) -> None:
    """As JSON, or as `text` writes it for people."""
    if as_json:
        show_json(value)
    else:
        text(value)


def show_list(
    found: Sequence[Value],
    as_json: bool,
    columns: Sequence[str],
    row: Callable[[Value], Sequence[str]],
    empty: str,
) -> None:
    """As JSON, or as a table with one row for each; `empty` is said when there are none."""
    show(found, as_json, lambda values: show_table(columns, [row(one) for one in values], empty))


def show_fields(value: Any, as_json: bool = False) -> None:
    """As JSON, or its fields one below the other."""
    show(to_json(value), as_json, lambda record: show_record(record_fields(record)))


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str, console: Console | None = None
) -> None:
    """`empty` is said when there are no rows."""
    if not rows:
        say(empty)
        return
    out = console or make_console()
    table = _table(columns, rows)
    # rich's minimum width is that of the longest words; it would cut off the rest.
    if out.measure(table, options=out.options.update(max_width=UNLIMITED)).maximum <= out.width:
        out.print(table)
        return
    for row in rows:
        show_record(zip(columns, row, strict=True), out)
        out.print()


def show_record(fields: Iterable[tuple[str, str]], console: Console | None = None, margin: str = "") -> None:
    """Name and value, one below the other; long values are wrapped, not cut."""
    out, pairs = console or make_console(), list(fields)
    indent = max((len(name) for name, _ in pairs), default=0) + len(margin) + 2
    for name, value in pairs:
        first, *more = visible_lines(value).split("\n")
        style = STYLES.get(first.split(" ")[0], "")
        out.print(Text.assemble((f"{margin}{name}".ljust(indent), "bold"), (first, style)), soft_wrap=True)
        for rest in more:
            out.print(Text(f"{'':{indent}}{rest}"), soft_wrap=True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The program's root handles it for all output."""
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
