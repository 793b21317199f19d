"""Where settings come from: flags, variables, the file .env and a file of settings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from duetime import config_compat
from duetime.config import (
    ENVIRONMENT,
    FILE,
    FILE_VARIABLE,
    FOLDER,
    OTHER_VARIABLES,
    PREFIX,
    TABLE,
    TYPED,
    VARIABLES_FILE,
    Setting,
    Settings,
)
from duetime.errors import ConfigError

# A line of .env: a comment begins with # after a blank; in quotes everything is part of the value.
_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?:(?P<quote>["'])(?P<quoted>.*?)(?P=quote)|(?P<plain>.*?))"""
    r"""\s*(?:(?<=\s)#.*)?"""
)


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Settings:
    """The settings from all sources. `file` must exist. Without it, DUETIME_CONFIG names the file, or
    duetime.toml is read if it exists."""
    stored = _stored_variables()
    layers = _layers(flags, environment, stored, file)
    own = {name: entry for _, layer in layers for name, entry in layer.items()}
    distances = {name: distance for distance, layer in layers for name in layer}
    environment = {**stored, **environment}
    refuse_unknown_variables(environment)
    written = {**config_compat.settings_from(environment, "app" in own), **own}
    values = {name: _parsed(TABLE[name], value, source) for name, (value, source) in written.items()}
    remarks = tuple(config_compat.remarks(environment, "app" in own))
    sources = {name: source for name, (_, source) in written.items()}
    return Settings(**values, sources=sources, distances=distances, remarks=remarks)


class NamedStore(NamedTuple):
    url: str
    source: str | None  # None: it is the default


def find_store(environment: Mapping[str, str]) -> NamedStore:
    """The store of a program that names none, from the same sources. Other settings are not checked: they are
    for nodes, and orchestrators set variables such as DUETIME_PORT for every program."""
    found: dict[str, tuple[Any, str]] = {}
    for _, layer in _layers({}, environment, _stored_variables()):
        found |= layer
    setting = TABLE["store"]
    if setting.name not in found:
        return NamedStore(setting.default, None)
    value, source = found[setting.name]
    return NamedStore(_parsed(setting, value, source), source)


def _layers(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    stored: Mapping[str, str],
    file: Path | None = None,
) -> list[tuple[int, dict[str, tuple[Any, str]]]]:
    """Distance, and values with their sources; each overrides those before it."""
    distance = TYPED if file else ENVIRONMENT if environment.get(FILE_VARIABLE) else FOLDER
    return [
        (distance, _from_file(file or _named_file({**stored, **environment}))),
        (FOLDER, {name: (value, f"{source} in .env") for name, (value, source) in _from_variables(stored)}),
        (ENVIRONMENT, dict(_from_variables(environment))),
        (TYPED, {name: (value, TABLE[name].flag) for name, value in flags.items() if value is not None}),
    ]


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = [*(one.variable for one in TABLE.values()), *OTHER_VARIABLES]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            raise ConfigError(f"{name}: unknown variable: {_suggestion(name, known)}")


def _named_file(environment: Mapping[str, str]) -> Path | None:
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    return Path(FILE) if Path(FILE).is_file() else None


def _stored_variables() -> dict[str, str]:
    """Of the file .env in this folder. It may belong to other programs, too: unknown lines are skipped."""
    path = Path(VARIABLES_FILE)
    try:
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: cannot be read: {problem}") from None
    found = [match for line in lines if (match := _ASSIGNMENT.fullmatch(line))]
    return {match["name"]: match["quoted"] if match["quote"] else match["plain"] for match in found}


def _from_variables(variables: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, one in TABLE.items():
        if variables.get(one.variable):
            yield name, (variables[one.variable], one.variable)


def _from_file(path: Path | None) -> dict[str, tuple[Any, str]]:
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(
            f"{path}: cannot be read ({problem.strerror}): give another file with --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: is not valid TOML: {problem}") from None
    for name in content:
        if name not in TABLE:
            raise ConfigError(f"{path}: {name!r} is not a setting: {_suggestion(name, TABLE)}")
    return {name: (value, str(path)) for name, value in content.items()}


def _parsed(setting: Setting, value: Any, source: str) -> Any:
    try:
        return setting.parse(value)
    except ValueError as problem:
        raise ConfigError(f"{setting.name} (from {source}): {problem}") from None


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known := list(known), 1)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
