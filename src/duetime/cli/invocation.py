"""What was typed on the command line, the settings it leads to, and the flags of settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from duetime.config import TABLE, Settings, load


@dataclass(frozen=True, slots=True)
class Invocation:
    """The flags that were given. The other sources of settings are read when a command asks."""

    flags: dict[str, Any]
    config: Path | None


def invocation(context: typer.Context) -> Invocation:
    found = context.find_object(Invocation)
    return Invocation({}, None) if found is None else found


def settings_of(context: typer.Context, **flags: str | None) -> Settings:
    """The settings of this invocation, with these flags added to those that stand before the command."""
    given = invocation(context)
    given.flags.update({name: value for name, value in flags.items() if value is not None})
    return load(given.flags, os.environ, given.config)


def setting_option(name: str, **more: Any) -> Any:
    """The flag of a setting. Its value stays text: the settings parse all sources alike."""
    setting = TABLE[name]
    default = f" [default: {setting.shown_default}]" if setting.shown_default else ""
    text = f"{setting.text} [env: {setting.variable}]{default}"
    return typer.Option(setting.flag, metavar=setting.form, show_default=False, help=text, **more)


def value_option(flag: str, form: str, text: str, **more: Any) -> Any:
    """A flag that takes a value."""
    return typer.Option(flag, metavar=form, help=text, **more)
