"""`duetime doctor`: is all well, and if not, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import JsonFlag

if TYPE_CHECKING:
    from duetime.cli.checks import Check
    from duetime.config import Settings


def add_doctor(program: typer.Typer) -> None:
    command(program, "doctor", "duetime doctor", "duetime doctor --json")(doctor)


def doctor(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Check the store, clocks, nodes, leases, and what is overdue; fails when something needs attention."""
    from dataclasses import asdict

    from duetime.cli.failure import REFUSED
    from duetime.cli.output import show_json

    checks = _checks(invocation(context).settings())
    if as_json:
        show_json([asdict(check) for check in checks])
    else:
        _show(checks)
    if any(check.level == "warn" for check in checks):
        raise typer.Exit(REFUSED)


def _checks(settings: Settings) -> list[Check]:
    import asyncio

    from duetime.cli.checks import Check, examine, foreign_names, observe, reachable
    from duetime.cli.session import find_app, require_file
    from duetime.errors import ConfigError, DuetimeError

    try:
        app = find_app(settings)
        if settings.app is None or settings.given("store"):
            require_file(settings.store)
        seen = asyncio.run(observe(app))
    except DuetimeError as problem:
        # A setting that is wrong says itself what to do.
        remedy = "" if isinstance(problem, ConfigError) else "check --store, the network, and that the server runs"
        return [Check("store", "warn", f"{problem.message} [{problem.code}]", remedy)]
    return [reachable(settings), *foreign_names(settings), *examine(seen)]


def _show(checks: list[Check]) -> None:
    from duetime.cli.output import Field, show_record

    show_record([Field(check.name, "\n-> ".join(filter(None, [f"{check.level} {check.text}", check.remedy]))) for check in checks])
