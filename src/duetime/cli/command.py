"""What all commands have in common: `--store`, examples below the help, and the settings as this invocation sees them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from duetime.cli.failure import USAGE
from duetime.cli.flags import option
from duetime.config import Settings, load

Command = Callable[..., None]


class PlainCommand(TyperCommand):
    """Its help shows arguments as manuals do: `NAME`, `[NAME]...`. Of which Python type they are is nothing to whoever types them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010  # typer's own, and not in all its versions

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


@dataclass(frozen=True, slots=True)
class Invocation:
    """What stood on the command line; the rest of the settings is read when a command asks."""

    flags: dict[str, Any]
    config: Path | None

    def settings(self) -> Settings:
        return load(self.flags, os.environ, self.config)


def invocation(context: typer.Context) -> Invocation:
    found = context.find_object(Invocation)
    return Invocation({}, None) if found is None else found


def group(text: str) -> typer.Typer:
    """A group of commands; alone it shows what it has."""
    made = typer.Typer(help=text, rich_markup_mode=None, invoke_without_command=True)

    @made.callback()
    def overview(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(USAGE)

    return made


def command(parent: typer.Typer, name: str, *examples: str) -> Callable[[Command], Command]:
    """Add a command to a group; it gets the option --store on top of its own."""

    def register(function: Command) -> Command:
        parent.command(name, cls=PlainCommand, epilog=_epilog(examples), help=inspect.getdoc(function))(_with_store(function))
        return function

    return register


def _epilog(examples: tuple[str, ...]) -> str | None:
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples) if examples else None


def _with_store(function: Command) -> Command:
    def carry_out(context: typer.Context, store: str | None = None, **given: Any) -> None:
        if store is not None:
            invocation(context).flags["store"] = store
        function(context, **given)

    return taking(function, carry_out, {"store": (Annotated[str | None, option("store")], None)})


def taking(function: Command, carry_out: Command, added: dict[str, tuple[Any, Any]], hidden: str | None = None) -> Command:
    """`carry_out`, which calls the function, with the function's own parameters (but not `hidden`) and those added, each with its
    annotation and default: typer reads them from the signature."""
    kept = inspect.signature(function, eval_str=True)
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept.parameters.values() if one.name != hidden]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind) for name, (kind, default) in added.items()
    ]
    carry_out.__signature__ = kept.replace(parameters=[*own, *more])  # type: ignore[attr-defined]  # functions may carry one
    carry_out.__annotations__ = {one.name: one.annotation for one in [*own, *more]}
    carry_out.__name__, carry_out.__doc__ = function.__name__, function.__doc__
    return carry_out
