"""How commands are declared: `command` registers a function whose parameters are its flags, or groups of
flags."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from duetime.cli.program import USAGE, invocation, setting_option

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """Several flags that make one value: `changes: Annotated[dict[str, Any], FlagGroup(schedule_changes)]`
    gives a command the parameters of `schedule_changes` as flags, and the command gets what it returns."""

    make: Callable[..., Any]


def flag_group(make: Callable[..., Any], flags: Mapping[str, tuple[Any, Any]]) -> FlagGroup:
    """A group whose flags come from a table: annotation and default by name."""
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in flags.items()
    ]
    setattr(make, "__signature__", inspect.Signature(parameters))  # noqa: B010  # functions may carry one
    return FlagGroup(make)


class PlainCommand(TyperCommand):
    """Its help shows arguments as manuals do, `NAME` or `[NAME]...`, without their Python types."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010  # typer's own, and not in all its versions

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def standalone() -> typer.Typer:
    """For a file whose one command is not in a group."""
    return typer.Typer(rich_markup_mode=None, add_completion=False)


def group(text: str) -> typer.Typer:
    """A group of commands. Without a command it shows its help."""
    made = typer.Typer(help=text, rich_markup_mode=None, add_completion=False, invoke_without_command=True)

    @made.callback()
    def overview(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(USAGE)

    return made


def command(parent: typer.Typer, name: str, *examples: str) -> Callable[[Command], Command]:
    """Register a function as a command. It gets the flag --store on top of its own."""

    def register(function: Command) -> Command:
        parent.command(name, cls=PlainCommand, epilog=_epilog(examples), help=inspect.getdoc(function))(
            _with_flags(function)
        )
        return function

    return register


def _epilog(examples: tuple[str, ...]) -> str | None:
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples) if examples else None


def _with_flags(function: Command) -> Command:
    """The function with one parameter per flag: typer reads flags from the signature."""

    def run(context: typer.Context, store: str | None = None, **given: Any) -> None:
        if store is not None:
            invocation(context).flags["store"] = store
        _call(function, {"context": context, **given})

    store = Parameter(
        "store",
        Parameter.KEYWORD_ONLY,
        annotation=Annotated[str | None, setting_option("store")],
        default=None,
    )
    parameters = {**_flags_of(function), "store": store}
    setattr(run, "__signature__", inspect.Signature(list(parameters.values())))  # noqa: B010
    run.__annotations__ = {one.name: one.annotation for one in parameters.values()}
    run.__name__ = function.__name__
    return run


def _flags_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for one in _parameters(function):
        inner = _group_of(one)
        found |= (
            {one.name: one.replace(kind=Parameter.KEYWORD_ONLY)} if inner is None else _flags_of(inner.make)
        )
    return found


def _call(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call the function with its flags; the values of groups are made first."""
    values = {
        one.name: given[one.name] if (inner := _group_of(one)) is None else _call(inner.make, given)
        for one in _parameters(function)
    }
    return function(**values)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


def _group_of(parameter: Parameter) -> FlagGroup | None:
    return next(
        (one for one in getattr(parameter.annotation, "__metadata__", ()) if isinstance(one, FlagGroup)), None
    )
