"""`duetime queue`: what waits and runs in each queue, and the operator's hand on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, group
from duetime.cli.completion import complete_queue
from duetime.cli.flags import JsonFlag, words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from duetime.app import App
    from duetime.model.limit import Queue
    from duetime.store import QueueCount

    Entry = tuple[Queue, QueueCount]

queue = group("See the queues; pause, resume and limit them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The queue's name.", autocompletion=complete_queue)]


@command(queue, "list", "duetime queue list --json")
def list_queues(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Every queue a job was ever stored under or that was set, by name."""
    from duetime.cli.output import show_json, show_table
    from duetime.cli.records import queue_record
    from duetime.cli.session import with_app

    found = with_app(context, _read)
    if as_json:
        show_json([queue_record(*entry) for entry in found])
        return
    columns = ("NAME", "STATE", "WAITING", "DUE", "RUNNING", "MOST AT ONCE", "RATE", "NOTE")
    show_table(columns, [_row(*entry) for entry in found], "no queues")


@command(queue, "pause", "duetime queue pause mail --note 'the mail server is being moved'")
def pause(
    context: typer.Context,
    name: Name,
    note: Annotated[str | None, words("--note", "TEXT", "Why; shown with the queue and with jobs that wait for it.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Start nothing more from this queue, on whichever node. What runs goes on; jobs may be submitted and wait."""
    _change(context, name, as_json, lambda app: app.pause_queue(name, note))


@command(queue, "resume", "duetime queue resume mail")
def resume(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Start its jobs again."""
    _change(context, name, as_json, lambda app: app.resume_queue(name))


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
    _change(context, name, as_json, lambda app: app.limit_queue(name, most=most, rate=rate))


def _change(context: typer.Context, name: str, as_json: bool, change: Callable[[App], Awaitable[Any]]) -> None:
    from duetime.cli.output import say, show_json
    from duetime.cli.records import queue_record
    from duetime.cli.session import with_app

    async def work(app: App) -> Entry:
        await change(app)
        return next(entry for entry in await _read(app) if entry[0].name == name)

    found, count = with_app(context, work)
    if as_json:
        show_json(queue_record(found, count))
    else:
        say(_sentence(found, count))


async def _read(app: App) -> list[Entry]:
    from duetime.store import QueueCount

    counts = {count.queue: count for count in await app.store.count_jobs()}
    return [(one, counts.get(one.name) or QueueCount(one.name, 0, 0, 0)) for one in await app.store.queues()]


def _sentence(found: Queue, count: QueueCount) -> str:
    most, rate = _limits(found)
    state = f"paused; {count.running} still running, {count.pending} waiting" if found.paused else "active"
    limits = [f"at most {most} at once" if found.most is not None else "", f"at most {rate} starts" if found.rate is not None else ""]
    return f"{found.name} is {state}; {' and '.join(filter(None, limits)) or 'no limit'}"


def _limits(found: Queue) -> tuple[str, str]:
    from duetime.model.limit import show_rate

    return "-" if found.most is None else str(found.most), "-" if found.rate is None else show_rate(found.rate)


def _row(found: Queue, count: QueueCount) -> tuple[str, ...]:
    state = "paused" if found.paused else "active"
    numbers = (str(count.pending), str(count.due), str(count.running))
    return found.name, state, *numbers, *_limits(found), found.pause_note or "-"
