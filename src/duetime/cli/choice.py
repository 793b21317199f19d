"""One or many: a command that takes names or ids, or with --all whatever matches; many are counted and asked about first."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from duetime.cli.command import Command, taking
from duetime.cli.flags import (
    AllFlag,
    DryRunFlag,
    InQueueFlag,
    JsonFlag,
    OfLabelFlag,
    OfOwnerFlag,
    OfScheduleFlag,
    OfTargetFlag,
    TextFlag,
    YesFlag,
)

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import Bulk

    Act = Callable[..., Awaitable[Bulk]]

MOST_TOLD = 20  # failures of a bulk that are written one by one
OF_JOBS: dict[str, Any] = {
    "queue": InQueueFlag, "schedule": OfScheduleFlag, "owner": OfOwnerFlag, "label": OfLabelFlag, "target": OfTargetFlag,
}  # fmt: skip
OF_SCHEDULES: dict[str, Any] = {
    "text": TextFlag, "owner": OfOwnerFlag, "label": OfLabelFlag, "target": OfTargetFlag, "queue": InQueueFlag,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """What stands on the command line beside names or ids."""

    everything: bool
    filters: dict[str, Any]
    dry_run: bool
    yes: bool
    as_json: bool

    def check(self, named: Sequence[str] | None, what: str) -> None:
        """Names or --all; and what narrows --all only beside it."""
        if self.everything == bool(named):
            raise typer.BadParameter(f"give {what}, or --all")
        given = {**self.filters, "dry_run": self.dry_run, "json": self.as_json}
        beside = [name for name, value in given.items() if value not in (None, False)]
        if beside and not self.everything:
            raise typer.BadParameter(f"--{beside[0].replace('_', '-')} is for --all: leave it out beside {what}")

    def wanted(self) -> dict[str, Any]:
        from duetime.cli.inputs import read_label

        return {name: read_label(value) if name == "label" else value for name, value in self.filters.items()}


def choosing(**flags: Any) -> Callable[[Command], Command]:
    """Gives a command --all, the filters in `flags`, --dry-run, --yes and --json; the function is handed a Choice."""

    def wrap(function: Command) -> Command:
        def carry_out(context: typer.Context, **given: Any) -> None:
            filters = {name: given.pop(name) for name in flags}
            chosen = Choice(given.pop("everything"), filters, given.pop("dry_run"), given.pop("yes"), given.pop("as_json"))
            function(context, choice=chosen, **given)

        switches = {"dry_run": (DryRunFlag, False), "yes": (YesFlag, False), "as_json": (JsonFlag, False)}
        added = {"everything": (AllFlag, False), **{name: (kind, None) for name, kind in flags.items()}, **switches}
        return taking(function, carry_out, added, hidden="choice")

    return wrap


def one_by_one(context: typer.Context, named: Sequence[str], act: Callable[[Access, str], Awaitable[str]]) -> None:
    """What is refused does not hold up the others; the exit status tells of it. One alone fails as any command does."""
    from duetime.cli.failure import REFUSED, report
    from duetime.cli.output import say
    from duetime.cli.session import with_access
    from duetime.errors import DuetimeError, ServiceError, StoreError

    async def work(access: Access) -> int:
        refused = 0
        for one in named:
            try:
                say(await act(access, one))
            except (StoreError, ServiceError):
                raise
            except DuetimeError as problem:
                if len(named) == 1:
                    raise
                report(problem.message, problem.code)
                refused += 1
        return refused

    if with_access(context, work):
        raise typer.Exit(REFUSED)


def all_that_match(context: typer.Context, noun: str, verb: str, choice: Choice, bulk: Callable[[Access], Act]) -> None:
    """Count them, ask, act, and tell what came of it. `bulk` is the access' own, with the action given."""
    from duetime.cli.session import with_access

    wanted = choice.wanted()

    async def count(access: Access) -> Bulk:
        return await partial(bulk(access), **wanted)(dry_run=True)

    async def act(access: Access) -> Bulk:
        with Ticker(noun) as ticker:
            return await partial(bulk(access), **wanted)(progress=ticker.tell)

    if choice.dry_run or not choice.yes:
        found = with_access(context, count)
        if choice.dry_run or found.matched == 0:
            _tell(found, f"{_many(found, noun)} would be {verb}", choice.as_json)
            return
        typer.confirm(f"{_many(found, noun)} will be {verb}. Go on?", abort=True, err=True)
    done = with_access(context, act)
    _tell(done, f"{done.done:,} {noun}{'' if done.done == 1 else 's'} {verb}", choice.as_json)


def _many(found: Bulk, noun: str) -> str:
    least = "at least " if found.at_least else ""
    return f"{least}{found.matched:,} {noun}{'' if found.matched == 1 else 's'}"


def _tell(done: Bulk, sentence: str, as_json: bool) -> None:
    from duetime.cli.conversion import plain
    from duetime.cli.failure import REFUSED, report
    from duetime.cli.output import say, show_json

    if as_json:
        show_json({name: value for name, value in plain(done).items() if name != "next_cursor"})
    else:
        say(sentence)
        for failure in done.failed[:MOST_TOLD]:
            report(f"{failure.id}: {failure.detail}", failure.code)
        if len(done.failed) > MOST_TOLD:
            report(f"{len(done.failed) - MOST_TOLD:,} more were refused: --json lists them", "refused")
    if done.failed:
        raise typer.Exit(REFUSED)


class Ticker:
    """How far a long action is, on one line of a terminal that is written over; nothing where nobody looks."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._shown = False

    def __enter__(self) -> Ticker:
        return self

    def tell(self, bulk: Bulk) -> None:
        if bulk.next_cursor is None or not sys.stderr.isatty():
            return
        self._shown = True
        typer.echo(f"\r{bulk.done:,} {self._noun}s done ...", err=True, nl=False)

    def __exit__(self, *raised: object) -> None:
        if self._shown:
            typer.echo("\r\x1b[K", err=True, nl=False)
