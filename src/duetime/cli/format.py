"""Values as text for people: nothing that acts on a terminal, instants in the local zone and how far away
they are."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime.clock import wall_micros
from duetime.model.instant import Micros, to_datetime
from duetime.model.views import Difference, to_json

_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)

Moment = datetime | Micros


# -- text ------------------------------------------------------------------------------------------
def visible(text: object) -> str:
    """One printable line. Control characters, escape sequences and marks of writing direction become
    \\x1b, \\u202e and so on."""
    line = str(text)
    return line if line.isprintable() else "".join(one if one.isprintable() else _escape(one) for one in line)


def visible_lines(text: str) -> str:
    """As `visible`, but line ends stay."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def plural(count: int, noun: str) -> str:
    """As "1 job" or "2,000 jobs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def last_line(text: str | None, missing: str = "-") -> str:
    """Of an error: the line that names it."""
    return (text or missing).strip().splitlines()[-1]


# -- instants --------------------------------------------------------------------------------------
def now_here() -> datetime:
    """By this machine's clock."""
    return to_datetime(wall_micros())


def local(moment: Moment, zone: tzinfo | None = None) -> str:
    """As "2030-01-01 09:00:00+01:00", in this machine's zone unless another is given."""
    return _datetime(moment).astimezone(zone).isoformat(sep=" ", timespec="seconds")


def relative(moment: Moment, now: datetime) -> str:
    """As "in 5 min", "3 h ago" or "now"."""
    there = _datetime(moment)
    distance = abs(there - now)
    for step, unit in _UNITS:
        if distance >= step:
            return f"in {distance // step} {unit}" if there >= now else f"{distance // step} {unit} ago"
    return "now"


def moment_text(moment: Moment | None, missing: str = "-", now: Moment | None = None) -> str:
    """As "2030-01-01 09:00:00+01:00 (in 5 min)"."""
    return (
        missing
        if moment is None
        else f"{local(moment)} ({relative(moment, now_here() if now is None else _datetime(now))})"
    )


def iso(micros: Micros | None) -> str | None:
    """As JSON has it."""
    return None if micros is None else to_datetime(micros).isoformat().replace("+00:00", "Z")


def _datetime(moment: Moment) -> datetime:
    return moment if isinstance(moment, datetime) else to_datetime(moment)


# -- records ---------------------------------------------------------------------------------------
def target_text(target: dict[str, Any]) -> str:
    """A task's name, the words of a command, a destination and its key, or the method and URL of an HTTP
    target; of a shadow, the same of what would run."""
    if target.get("type") == "shadow" and "target" in target:
        return f"shadow of {target_text(target['target'])}"
    return str(
        target.get("name")
        or " ".join(filter(None, (target.get("destination"), target.get("key"))))
        or shlex.join(target.get("argv", ()))
        or f"{target.get('method', '')} {target.get('url', target.get('type', '-'))}".strip()
    )


def difference_text(change: Difference) -> str:
    """As "priority: 5 -> 9"."""
    before, after = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in (change.before, change.after)
    )
    return f"{change.field}: {before} -> {after}"


def record_fields(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of each field of a JSON record that has a value."""
    for name, value in record.items():
        if text := _value_text(name, value):
            yield name.replace("_", " "), text


def _value_text(name: str, value: Any) -> str:
    match value:
        case None | False | {} | [] if not value:
            return ""
        case True:
            return "yes"
        case str() if name.endswith(("_at", "_time", "_until")):
            return moment_text(datetime.fromisoformat(value))
        case {"type": _} if name == "target":
            return target_text(value)
        case {"done": _} if name == "progress":
            return _progress(**value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value).rstrip()


def _progress(done: float, total: float | None = None, note: str | None = None) -> str:
    """As "3 of 10 (30 %): pages"."""
    share = f" ({done / total * 100:.0f} %)" if total else ""
    text = f"{done:g}" if total is None else f"{done:g} of {total:g}{share}"
    return f"{text}: {note}" if note else text


# Tables, records and JSON on stdout. Colours only on a terminal; nothing is cut off; a narrow terminal
# gets records, not a table.


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
