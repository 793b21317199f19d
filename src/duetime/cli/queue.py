"""`duetime queue`: what waits and runs in each queue, and the operator's hand on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command, group
from duetime.cli.completion import complete_queue
from duetime.cli.flags import JsonFlag, words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from duetime.cli.access import Access
    from duetime.remote.results import Queue

queue = group("See the queues; pause, resume and limit them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.", autocompletion=complete_queue)]


@command(queue, "list", "duetime queue list --json")
def list_queues(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Every queue a job was ever stored under or that was set, by name."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_access

    found = with_access(context, lambda access: access.queues())
    if as_json:
        show_json(plain(found))
        return
    columns = ("NAME", "STATE", "WAITING", "DUE", "RUNNING", "MOST AT ONCE", "RATE", "NOTE")
    show_table(columns, [_row(one) for one in found], "no queues")


@command(queue, "pause", "duetime queue pause mail --note 'the mail server is being moved'")
def pause(
    context: typer.Context,
    name: Name,
    note: Annotated[str | None, words("--note", "TEXT", "Why; shown with the queue and with jobs that wait for it.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Start nothing more from this queue, on whichever node. What runs goes on; jobs may be submitted and wait."""
    _change(context, as_json, lambda access: access.pause_queue(name, note))


@command(queue, "resume", "duetime queue resume mail")
def resume(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Start its jobs again."""
    _change(context, as_json, lambda access: access.resume_queue(name))


@command(queue, "limit", "duetime queue limit mail --most 5 --rate 100/1m", "duetime queue limit mail --none")
def limit(
    context: typer.Context,
    name: Name,
    most: Annotated[int | None, words("--most", "N", "So many of its jobs run at once, over all nodes.")] = None,
    rate: Annotated[str | None, words("--rate", "N/TIME", "So many of its jobs start in any such time: 100/1m.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Lift the limits.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say how much of this queue may run, over all nodes. Replaces what was said before: what is not given is not limited."""
    if none == (most is not None or rate is not None):
        raise typer.BadParameter("give --most, --rate or both, or --none")
    _change(context, as_json, lambda access: access.limit_queue(name, most=most, rate=rate))


def _change(context: typer.Context, as_json: bool, change: Callable[[Access], Awaitable[Queue]]) -> None:
    from duetime.cli.conversion import plain
    from duetime.cli.output import say, show_json
    from duetime.cli.session import with_access

    found = with_access(context, change)
    if as_json:
        show_json(plain(found))
    else:
        say(_sentence(found))


def _sentence(found: Queue) -> str:
    state = f"paused; {found.running} still running, {found.pending} waiting" if found.paused else "active"
    most = f"at most {found.most} at once" if found.most is not None else ""
    rate = f"at most {found.rate} starts" if found.rate is not None else ""
    return f"{found.name} is {state}; {' and '.join(filter(None, [most, rate])) or 'no limit'}"


def _row(found: Queue) -> tuple[str, ...]:
    state = "paused" if found.paused else "active"
    numbers = (str(found.pending), str(found.due), str(found.running))
    limits = ("-" if found.most is None else str(found.most), found.rate or "-")
    return found.name, state, *numbers, *limits, found.pause_note or "-"
