"""`duetime job logs`: what a job has logged and printed, and what it logs now."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import typer

from duetime.cli.backend import Backend, find_job, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.format import hint, plural, say, visible_lines
from duetime.cli.program import value_option
from duetime.clock import pause
from duetime.model.views import OutputLine, OutputView, to_json

commands = standalone()

POLL_INTERVAL = 1.0  # seconds: workers write output about as often
EXAMPLE = "01935c2e-7b3a-7000-8000-000000000000"


@command(commands, "logs", f"duetime job logs {EXAMPLE}", f"duetime job logs {EXAMPLE} --follow")
def logs(
    context: typer.Context,
    job_id: Annotated[
        str, typer.Argument(metavar="ID", help="The job's id, its first digits, or its last 8.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is final, attempt after attempt.")
    ] = False,
    attempt: Annotated[
        int | None,
        value_option("--attempt", "N", "Of this attempt; without it, of the latest.", min=1),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, one line of output per line.")] = False,
) -> None:
    """What a job has logged with ctx.log, and what its child process or command has printed."""

    async def work(backend: Backend) -> None:
        reader = _Reader(backend, await find_job(backend, job_id), as_json)
        if follow:
            await reader.follow(attempt)
        elif not (await reader.show(attempt)).total:
            hint("no output")

    with_backend(context, work)


class _Reader:
    def __init__(self, backend: Backend, job_id: UUID, as_json: bool) -> None:
        self._backend = backend
        self._job_id = job_id
        self._as_json = as_json
        self._shown = 0  # the attempt shown last
        self._after = 0  # the last line of it

    async def follow(self, attempt: int | None) -> None:
        """Until the attempt has ended; without one, until the job is final."""
        number = attempt
        while True:
            view = await self.show(number)
            if view.ended:
                job = await self._backend.get_job(self._job_id)
                if attempt is not None or (job.state.final and job.attempt <= view.attempt):
                    return
                number = min(view.attempt + 1, job.attempt)
            else:
                number = view.attempt or None
            if number == view.attempt or number is None:
                await pause(POLL_INTERVAL)

    async def show(self, attempt: int | None) -> OutputView:
        after = self._after if attempt is not None and attempt == self._shown else 0
        view = await self._backend.job_output(self._job_id, attempt=attempt, after=after)
        if view.attempt != self._shown:
            self._shown, self._after = view.attempt, 0
            if view.attempt > 1 and not self._as_json:
                hint(f"attempt {view.attempt}")
        self._print(view.lines, view.total if view.ended else view.last)
        self._after = max(self._after, view.last)
        return view

    def _print(self, lines: Sequence[OutputLine], until: int) -> None:
        before = self._after
        for line in lines:
            self._print_gap(line.number - before - 1)
            before = line.number
            say(json.dumps(to_json(line)) if self._as_json else _text(line))
        self._print_gap(until - before)
        sys.stdout.flush()  # a reader of the pipe gets each line when it is there

    def _print_gap(self, count: int) -> None:
        if count > 0 and not self._as_json:
            hint(f"[{plural(count, 'line')} left out]")


def _text(line: OutputLine) -> str:
    at = line.at.astimezone().isoformat(sep=" ", timespec="milliseconds")
    where = line.level if line.stream == "log" else line.stream
    return f"{at} {where:<8} {visible_lines(line.text)}"
