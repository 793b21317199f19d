"""Commands that act on several things: given by name or id, or with --all on every match. Matches are
counted and confirmed first."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import FlagGroup, flag_group
from duetime.cli.format import plural, say, show_json
from duetime.cli.inputs import (
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
    read_label,
)
from duetime.cli.program import REFUSED, report
from duetime.errors import DuetimeError, ServiceError, StoreError
from duetime.model.views import BulkResult, to_json

MAX_REPORTED = 20  # failures of a bulk action that are written one by one
JOB_FILTERS: dict[str, Any] = {
    "queue": InQueueFlag, "schedule": OfScheduleFlag, "owner": OfOwnerFlag, "label": OfLabelFlag,
    "target": OfTargetFlag,
}  # fmt: skip
SCHEDULE_FILTERS: dict[str, Any] = {
    "text": TextFlag, "owner": OfOwnerFlag, "label": OfLabelFlag, "target": OfTargetFlag,
    "queue": InQueueFlag,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """The flags next to names or ids."""

    everything: bool
    filters: dict[str, Any]
    dry_run: bool
    yes: bool
    as_json: bool

    def check(self, named: Sequence[str] | None, what: str) -> None:
        """Either names or --all; filters only with --all."""
        if self.everything == bool(named):
            raise typer.BadParameter(f"give {what}, or --all")
        given = {**self.filters, "dry_run": self.dry_run, "json": self.as_json}
        extra = [name for name, value in given.items() if value not in (None, False)]
        if extra and not self.everything:
            raise typer.BadParameter(f"--{extra[0].replace('_', '-')} works only with --all, not with {what}")

    def wanted(self) -> dict[str, Any]:
        return {name: read_label(value) if name == "label" else value for name, value in self.filters.items()}


def selection_flags(**filters: Any) -> FlagGroup:
    """--all, the given filters, --dry-run, --yes and --json; the value is a Selection."""

    def make(everything: bool, dry_run: bool, yes: bool, as_json: bool, **given: Any) -> Selection:
        return Selection(everything, given, dry_run, yes, as_json)

    switches = {"dry_run": (DryRunFlag, False), "yes": (YesFlag, False), "as_json": (JsonFlag, False)}
    return flag_group(
        make,
        {
            "everything": (AllFlag, False),
            **{name: (kind, None) for name, kind in filters.items()},
            **switches,
        },
    )


class Action(NamedTuple):
    """What a command does to each thing it is given, or to all that match."""

    noun: str  # "job"
    done: str  # "cancelled"
    one: Callable[[Backend, str], Awaitable[Any]]
    line: Callable[[str, Any], str]  # what to print, given the name or id and the result of `one`
    all: Callable[
        [Backend, dict[str, Any]], Awaitable[BulkResult]
    ]  # with the filters, and `dry_run` or `progress`

    def apply(
        self, context: typer.Context, selection: Selection, named: Sequence[str] | None, what: str
    ) -> None:
        selection.check(named, what)
        if named:
            self._apply_to_each(context, named)
        else:
            self._apply_to_matches(context, selection)

    def _apply_to_each(self, context: typer.Context, named: Sequence[str]) -> None:
        """A refusal does not stop the others; the exit status reports it. A single one fails like any
        command."""

        async def work(backend: Backend) -> int:
            refused = 0
            for one in named:
                try:
                    say(self.line(one, await self.one(backend, one)))
                except (StoreError, ServiceError):
                    raise
                except DuetimeError as problem:
                    if len(named) == 1:
                        raise
                    report(problem.message, problem.code)
                    refused += 1
            return refused

        if with_backend(context, work):
            raise typer.Exit(REFUSED)

    def _apply_to_matches(self, context: typer.Context, selection: Selection) -> None:
        wanted = selection.wanted()
        if selection.dry_run or not selection.yes:
            found = with_backend(context, lambda backend: self.all(backend, {**wanted, "dry_run": True}))
            matches = f"{'at least ' if found.at_least else ''}{plural(found.matched, self.noun)}"
            if selection.dry_run or found.matched == 0:
                _show_outcome(found, f"{matches} would be {self.done}", selection.as_json)
                return
            typer.confirm(f"{matches} will be {self.done}. Go on?", abort=True, err=True)
        with ProgressLine(self.noun) as line:
            bulk = with_backend(
                context, lambda backend: self.all(backend, {**wanted, "progress": line.show_bulk})
            )
        _show_outcome(bulk, f"{plural(bulk.done, self.noun)} {self.done}", selection.as_json)


def _show_outcome(bulk: BulkResult, sentence: str, as_json: bool) -> None:
    if as_json:
        show_json({name: value for name, value in to_json(bulk).items() if name != "next_cursor"})
    else:
        say(sentence)
        for failure in bulk.failed[:MAX_REPORTED]:
            report(f"{failure.id}: {failure.detail}", failure.code)
        if len(bulk.failed) > MAX_REPORTED:
            report(f"{len(bulk.failed) - MAX_REPORTED:,} more were refused: --json lists them", "refused")
    if bulk.failed:
        raise typer.Exit(REFUSED)


class ProgressLine:
    """How far a long action is: one line of a terminal, overwritten; nothing if stderr is not a terminal."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def show(self, done: int) -> None:
        if sys.stderr.isatty():
            self._shown = True
            typer.echo(f"\r{done:,} {self._noun}s done ...", err=True, nl=False)

    def show_bulk(self, bulk: BulkResult) -> None:
        if bulk.next_cursor is not None:
            self.show(bulk.done)

    def __exit__(self, *raised: object) -> None:
        if self._shown:
            typer.echo("\r\x1b[K", err=True, nl=False)
