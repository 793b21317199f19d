"""`duetime apply`: make the stored schedules equal to those in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Annotated, Any

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import command, standalone
from duetime.cli.documents.changes import Planning, Step, StepAction, apply_step
from duetime.cli.documents.reading import Collection, read_files
from duetime.cli.documents.references import OPTION, PREFIX
from duetime.cli.format import difference_text, hint, moment_text, plural, say, show_json
from duetime.cli.inputs import JsonFlag, YesFlag
from duetime.cli.program import REFUSED, report, value_option
from duetime.errors import Conflict, DuetimeError, InvalidDocument
from duetime.model.edit_plan import HORIZON
from duetime.model.views import PlanView

commands = standalone()

DIFFERS = 3  # the exit status of --plan when there is something to change; 2 is that of wrong use
MARKS = {StepAction.ADD: "+", StepAction.CHANGE: "~", StepAction.REMOVE: "-"}
DONE = {
    StepAction.ADD: "added",
    StepAction.CHANGE: "changed",
    StepAction.REMOVE: "removed",
    StepAction.KEEP: "unchanged",
}


@command(
    commands,
    "apply",
    "duetime apply schedules.yaml --plan",
    "duetime apply schedules/ --prune --managed-by shop --yes",
    "duetime export | duetime --server https://duetime.example.org apply -",
    "duetime apply --schema > schedules.schema.json",
)
def apply(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Files or folders; - for stdin.", show_default=False),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only show what would change. Exit status: 3 if anything, 0 if nothing."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove schedules of the same `managed_by` that left the files."),
    ] = False,
    managed_by: Annotated[
        str | None,
        value_option("--managed-by", "NAME", "The name of these files, in place of their own `managed_by`."),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over schedules that another name manages.")
    ] = False,
    send_secrets: Annotated[
        bool,
        typer.Option("--send-secrets", help="Send secrets again; otherwise those of unchanged targets stay."),
    ] = False,
    secrets_from: Annotated[
        list[str] | None,
        value_option(
            OPTION,
            "NAME|FOLDER",
            f"A variable or folder that the files may refer to, besides {PREFIX}... and their own folder.",
            show_default=False,
        ),
    ] = None,
    horizon: Annotated[str, value_option("--horizon", "TIME", "How far the plan looks ahead.")] = HORIZON,
    count: Annotated[
        int, value_option("--count", "N", "How many fires of each kind to show.", min=1, max=1_000)
    ] = 3,
    yes: YesFlag = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON Schema of the files, for editors.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create and change schedules until they are as the files say. Applying the same files again changes
    nothing. If one entry is wrong, nothing is applied."""
    if schema:
        typer.echo(schema_text(), nl=False)
        return
    if not paths:
        raise typer.BadParameter("give the files of schedules, such as schedules.yaml, or - for stdin")
    try:
        wanted = read_files(paths, managed_by, secrets_from or ())
        if prune and not wanted.names:
            raise Conflict("--prune: the files have no `managed_by`: add it, or give --managed-by")
        options = {"horizon": horizon, "count": count, "adopt": adopt, "send_secrets": send_secrets}
        steps = with_backend(
            context,
            lambda backend: _run(backend, wanted, prune, _Output(plan, yes, as_json), options),
            creates=not plan,
        )
    except InvalidDocument as problem:
        for line in problem.problems:
            report(line, problem.code)
        if len(problem.problems) > 1:
            hint(f"{plural(len(problem.problems), 'problem')}: nothing was applied")
        raise typer.Exit(REFUSED) from None
    if plan and any(step.action is not StepAction.KEEP for step in steps):
        raise typer.Exit(DIFFERS)


def schema_text() -> str:
    return files("duetime.cli.documents").joinpath("schedules.schema.json").read_text("utf-8")


async def _run(
    backend: Backend, wanted: Collection, prune: bool, output: _Output, options: dict[str, Any]
) -> list[Step]:
    steps = await Planning(backend, **options).steps(wanted, prune)
    output.show(steps)
    if not output.only_plan:
        output.confirm(steps)
        done = 0
        try:
            for step in steps:
                await apply_step(backend, step)
                done += step.action is not StepAction.KEEP
        except DuetimeError:
            hint(f"{plural(done, 'change')} made before the error: apply the files again for the rest")
            raise
        output.finish(steps)
    return steps


class _Output:
    def __init__(self, only_plan: bool, yes: bool, as_json: bool) -> None:
        self.only_plan = only_plan
        self._yes = yes
        self._as_json = as_json

    def show(self, steps: Sequence[Step]) -> None:
        if self._as_json:
            if self.only_plan:
                show_json(_as_json(steps))
            return
        for step in steps:
            for line in step_lines(step):
                say(line)
        if self.only_plan:
            counts = Counter(step.action for step in steps)
            verbs = ", ".join(f"{counts[action]:,} to {action}" for action in MARKS)
            say(f"{verbs}; {counts[StepAction.KEEP]:,} unchanged")

    def confirm(self, steps: Sequence[Step]) -> None:
        removed = [step.name for step in steps if step.action is StepAction.REMOVE]
        if removed and not self._yes:
            typer.confirm(
                f"Remove {plural(len(removed), 'schedule')} that left the files?", abort=True, err=True
            )

    def finish(self, steps: Sequence[Step]) -> None:
        if self._as_json:
            show_json(_as_json(steps))
        else:
            counts = Counter(step.action for step in steps)
            say(", ".join(f"{counts[action]:,} {word}" for action, word in DONE.items()))


def step_lines(step: Step) -> Iterator[str]:
    if step.plan is None:
        return
    words = f": {step.plan.words.after}" if step.action is StepAction.ADD else ""
    yield f"{MARKS[step.action]} {step.name}{words}"
    if step.action is StepAction.CHANGE:
        for change in step.plan.diff:
            yield f"    {difference_text(change)}"
    for secret in step.secrets:
        yield f"    sends {secret}"
    for line in _fire_lines(step.plan):
        yield f"    {line}"
    for warning in step.plan.warnings if step.action is not StepAction.REMOVE else ():
        yield f"    note: {warning}"


def _fire_lines(plan: PlanView) -> Iterator[str]:
    fires, counts = plan.fires, plan.counts
    shown = {
        "added": [moment_text(one) for one in fires.added],
        "moved": [f"{moment_text(one['from'])} -> {moment_text(one['to'])}" for one in fires.moved],
        "withdrawn": [moment_text(one) for one in fires.withdrawn],
    }
    for kind, lines in shown.items():
        for line in lines:
            yield f"fire {kind}: {line}"
        if more := getattr(counts, kind) - len(lines):
            yield f"fires {kind}: {more:,} more"
    if not plan.complete:
        yield "there are more fires than could be compared: use a shorter --horizon"
    if plan.jobs_withdrawn:
        yield f"pending jobs withdrawn: {plan.jobs_withdrawn:,}"


def _as_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {"name": step.name, "action": step.action, "secrets": step.secrets, "plan": step.plan}
        for step in steps
    ]
