"""`duetime copy`: everything of one store into another."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from duetime import stores
from duetime.app.store_copy import KindTotals, StoreCopy, Waiting, differences
from duetime.cli.backend import find_store_url, refuse_server
from duetime.cli.command import command, standalone
from duetime.cli.format import hint, plural, say, show, show_table
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import settings_of, value_option
from duetime.config import hide_password
from duetime.errors import ConfigError, CopyDiffers
from duetime.model import duration
from duetime.store import Store
from duetime.stores.sqlite.location import path_of

commands = standalone()

STORE = "postgresql://owner@db.example.org/duetime"
GARBAGE = 1_000_000  # objects


@command(
    commands,
    "copy",
    f"duetime copy --from sqlite:///duetime.db --to {STORE}",
    f"duetime copy --from sqlite:///duetime.db --to {STORE} --live",
    f"duetime copy --from sqlite:///duetime.db --to {STORE} --check",
)
def copy(
    context: typer.Context,
    to: Annotated[str, value_option("--to", "URL", "The store to copy into. It must be empty.")],
    origin: Annotated[
        str | None,
        value_option("--from", "URL", "The store to copy; without it, the store of the settings."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Copy while nodes work. Then pause the queues, wait until no job runs and all nodes have "
            "stopped, and copy the rest.",
        ),
    ] = False,
    wait: Annotated[
        str | None,
        value_option("--wait", "DURATION", "With --live: give up when nodes work longer than this."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only compare the stores. Writes nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Copy everything into another store: jobs with their history, schedules, queues, API keys, secrets. Ids
    and versions stay. After an interruption run it again: it copies only what differs."""
    if wait is not None and not live:
        raise typer.BadParameter("--wait works only with --live")
    if check and live:
        raise typer.BadParameter("give --check or --live, not both")
    patience = None if wait is None else duration.parse(wait, "--wait")
    settings = settings_of(context)
    refuse_server(settings)
    source_url = find_store_url(settings) if origin is None else origin
    with _rare_collections(), _ended_as_by_ctrl_c():
        found = asyncio.run(_copy(source_url, to, check, live, patience))
    show([_as_json(totals) for totals in found], as_json, lambda _: _show(found, check))
    if not all(totals.equal for totals in found):
        raise CopyDiffers(f"the stores differ: {differences(found)}")


@contextmanager
def _rare_collections() -> Iterator[None]:
    """A copy makes millions of tuples without cycles: the search for cycles takes a fifth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """By SIGTERM and by a terminal that closes: the queues that a live copy has paused work again."""
    numbers = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


async def _copy(
    source_url: str, target_url: str, check: bool, live: bool, wait: int | None
) -> list[KindTotals]:
    origin = place_of(source_url)
    if origin == place_of(target_url):
        raise ConfigError(f"--to: {origin} is the source, too: name another store")
    async with _opened("--from", source_url) as source, _opened("--to", target_url, not check) as target:
        with _Report() as report:
            work = StoreCopy(source, target, origin, report)
            if check:
                return await work.compare()
            with _can_be_resumed():
                found = await (work.run_live(wait) if live else work.run())
        await _report_running(target)
        return found


@contextmanager
def _can_be_resumed() -> Iterator[None]:
    try:
        yield
    except asyncio.CancelledError:
        hint("interrupted: the queues of the source are as before; run it again to finish the copy")
        raise


async def _report_running(target: Store) -> None:
    counts = [queue.counts for queue in await target.queues(counted=True)]
    if running := sum(one.running for one in counts if one is not None):
        hint(
            f"{plural(running, 'job')} had no end when the source stopped: nodes of the new store treat them "
            "as lost, and external ones wait for their reports there"
        )


@asynccontextmanager
async def _opened(flag: str, url: str, creates: bool = False) -> AsyncIterator[Store]:
    store = stores.from_url(url)
    if not store.capabilities.durable:
        raise ConfigError(f"{flag}: {url!r} ends with its process: name a store that stays")
    if not creates and urlsplit(url).scheme == "sqlite" and not path_of(url).exists():
        raise ConfigError(f"{flag}: there is no file {path_of(url)}: name the file of an existing store")
    try:
        if creates:
            await store.migrate()
        await store.open()
        yield store
    finally:
        await store.close()


def place_of(url: str) -> str:
    """The store without user and password: they may change between two tries."""
    if urlsplit(url).scheme == "sqlite":
        return f"sqlite:///{path_of(url)}"
    parts = urlsplit(hide_password(url))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class _Report:
    """How far the copy is: a line of a terminal, overwritten. What a person has to do is a line of its
    own."""

    def __init__(self) -> None:
        self._shown = self._asked = False

    def __enter__(self) -> _Report:
        return self

    def __call__(self, step: KindTotals | Waiting) -> None:
        if isinstance(step, KindTotals):
            self._show(f"{step.source.rows:,} {step.kind} {'compared' if step.compared else 'copied'} ...")
        elif step.running:
            self._show(f"{plural(step.running, 'job')} still run on {plural(len(step.nodes), 'node')} ...")
        elif not self._asked:
            self._asked = True
            self._clear()
            hint(f"no job runs any more: stop {plural(len(step.nodes), 'node')} of the source now")

    def __exit__(self, *raised: object) -> None:
        self._clear()

    def _show(self, text: str) -> None:
        if sys.stderr.isatty():
            self._shown = True
            typer.echo(f"\r{text}\x1b[K", err=True, nl=False)

    def _clear(self) -> None:
        if self._shown:
            typer.echo("\r\x1b[K", err=True, nl=False)


def _as_json(totals: KindTotals) -> dict[str, Any]:
    return {
        "kind": str(totals.kind),
        "rows": totals.source.rows,
        "rows_in_target": totals.target.rows,
        "written": totals.written,
        "checksum": totals.source.text,
        "checksum_of_target": totals.target.text,
        "equal": totals.equal,
        "differences": totals.examples,
    }


def _show(found: list[KindTotals], check: bool) -> None:
    rows = [
        (
            str(totals.kind),
            f"{totals.source.rows:,}",
            f"{totals.target.rows:,}",
            totals.source.text,
            "equal" if totals.equal else "differs",
        )
        for totals in found
    ]
    show_table(("KIND", "SOURCE", "TARGET", "CHECKSUM", ""), rows, "")
    if not check:
        say("finished: start the nodes on the new store")
