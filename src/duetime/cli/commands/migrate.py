"""`duetime migrate`: create or upgrade the schema."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from duetime.app import App
from duetime.cli.backend import find_app
from duetime.cli.command import command, standalone
from duetime.cli.format import say, show, show_table
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import settings_of
from duetime.store import Migration

commands = standalone()


@command(
    commands,
    "migrate",
    "duetime --store postgresql://owner@db.example.org/duetime migrate",
    "duetime migrate --plan",
)
def migrate(
    context: typer.Context,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only show the steps, what they lock, and which nodes are too old."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create the schema, or upgrade it to this version. Safe to run at any time, and from several places
    at the same time. A step that removes what living nodes use is refused."""
    app = find_app(settings_of(context))
    if plan:
        planned = asyncio.run(app.store.migrate(dry_run=True))
        show(_as_json(planned), as_json, lambda _: _show(planned))
        return
    done = asyncio.run(_migrate(app))
    show({"before": done.before, "after": done.after}, as_json, lambda _: _show_done(done))


def _show_done(done: Migration) -> None:
    say(
        f"schema {done.before} -> {done.after}"
        if done.before != done.after
        else f"schema {done.after}: nothing to do"
    )


async def _migrate(app: App) -> Migration:
    try:
        return await app.migrate()
    finally:
        await app.close()


def _as_json(planned: Migration) -> dict[str, Any]:
    return {
        "schema": planned.state.version,
        "compatible_from": planned.state.compatible_from,
        "steps": [
            {
                "number": step.number,
                "title": step.title,
                "phase": step.phase,
                "needs": step.needs,
                "compatible_from": step.compatible_from,
                "locks": list(step.locks),
            }
            for step in planned.steps
        ],
        "nodes": [node._asdict() for node in planned.nodes],
        "old_nodes": [node._asdict() for node in planned.old_nodes],
    }


def _show(planned: Migration) -> None:
    state = planned.state
    say(f"schema {state.version}, for programs that know schema {state.compatible_from} or a later one")
    rows = [
        (str(step.number), step.phase, ", ".join(step.locks) or "nothing", step.needs or "any", step.title)
        for step in planned.steps
    ]
    if not rows:
        say("nothing to do")
        return
    show_table(("STEP", "PHASE", "LOCKS", "NODES FROM", "WHAT"), rows, "")
    for node in planned.old_nodes:
        say(f"too old: node {node.name} has version {node.version}: upgrade or stop it before you migrate")
