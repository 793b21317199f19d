"""Secrets in files of schedules: never their values, only where they are: `{env: NAME}` or `{file: PATH}`.

A file of schedules also says which server gets the secret. So its author could have any secret of the machine
sent out: a file refers only to variables that are meant for it, and to files of its own folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duetime.cli.files import read_text
from duetime.errors import InvalidInput
from duetime.model.headers import is_secret
from duetime.model.target import HIDDEN, SIGNING

FORM = "{env: NAME} or {file: PATH}"
PREFIX = "SECRET_"
OWN = "DUETIME_"  # the keys of Duetime itself
OPTION = "--secrets-from"
Reference = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SecretSources:
    """What the references of a document may name."""

    folder: Path  # of the document
    names: frozenset[str] = frozenset()  # of variables, besides those that begin with PREFIX
    folders: tuple[Path, ...] = ()

    @staticmethod
    def of(file: str | None, allowed: Sequence[str]) -> SecretSources:
        """Of a file, or of stdin. `allowed`: names of variables, and folders."""
        folders = [Path(one).resolve() for one in allowed if "/" in one]
        names = frozenset(one for one in allowed if "/" not in one)
        folder = Path(file).absolute().parent if file else Path.cwd()
        return SecretSources(folder, names, tuple(folders))

    def located(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """The target with each reference checked, and with whole paths of files."""
        return with_secrets(target, self._located)

    def _located(self, reference: Reference, field: str) -> Reference:
        if "file" in reference:
            return {"file": str(self._file(reference["file"], field))}
        name = reference["env"]
        if name.upper().startswith(OWN):
            raise InvalidInput(
                field, f"{name} belongs to Duetime itself and is never sent: use another variable"
            )
        if not name.startswith(PREFIX) and name not in self.names:
            raise InvalidInput(
                field,
                f"a file of schedules may not read the environment variable {name}: let its name begin with "
                f"{PREFIX}, or allow it with {OPTION} {name}",
            )
        return reference

    def _file(self, path: str, field: str) -> Path:
        found = (self.folder / path).resolve()
        if not any(found.is_relative_to(folder) for folder in (self.folder.resolve(), *self.folders)):
            raise InvalidInput(
                field,
                f"the file {path} is not below the folder of the document, {self.folder}: move it there, or "
                f"allow its folder with {OPTION} {found.parent}",
            )
        return found


def with_secrets(target: Mapping[str, Any], secret: Callable[[Reference, str], Any]) -> dict[str, Any]:
    """The target with each reference replaced by `secret(reference, field)`. A secret that is written out is
    an error: the file is meant to be shared."""
    for name in target.get("headers") or ():
        if is_secret(str(name)):
            raise InvalidInput(f"target.headers.{name}", f"is secret: write it in secret_headers, as {FORM}")
    made = dict(target)
    if isinstance(hidden := target.get("secret_headers"), Mapping):
        made["secret_headers"] = {
            name: secret(_checked(value, place), place)
            for name, value in hidden.items()
            for place in [f"target.secret_headers.{name}"]
        }
    if target.get(SIGNING) is not None:
        place = f"target.{SIGNING}"
        made[SIGNING] = secret(_checked(target[SIGNING], place), place)
    return made


def without_values(target: Mapping[str, Any]) -> dict[str, Any]:
    """The target as it is checked and compared: *** for each secret."""
    return with_secrets(target, lambda reference, field: HIDDEN)


def with_values(target: Mapping[str, Any]) -> dict[str, Any]:
    """The target as it is sent."""
    return with_secrets(target, _read)


def references_in(target: Mapping[str, Any]) -> list[str]:
    """Each secret of the target and where its value comes from, for a person."""
    found: list[str] = []

    def describe(reference: Reference, field: str) -> str:
        [(kind, place)] = reference.items()
        found.append(
            f"{field.removeprefix('target.')} from {'the variable' if kind == 'env' else 'the file'} {place}"
        )
        return HIDDEN

    with_secrets(target, describe)
    return found


def placeholder(schedule: str, name: str) -> Reference:
    """What an export writes for a secret that it cannot know."""
    words = re.sub(r"[^A-Z0-9]+", "_", f"{PREFIX}{schedule}_{name}".upper())
    return {"env": words.strip("_")}


def _checked(value: Any, field: str) -> Reference:
    match value:
        case {"env": str()} | {"file": str()} if len(value) == 1:
            return {str(name): str(member) for name, member in value.items()}
    raise InvalidInput(field, f"must be a reference, because the file is meant to be shared: write {FORM}")


def _read(reference: Reference, field: str) -> str:
    if "env" in reference:
        name = reference["env"]
        if not os.environ.get(name):
            raise InvalidInput(field, f"the environment variable {name} is not set: export it first")
        return os.environ[name]
    try:
        return read_text(reference["file"]).strip()
    except ValueError as problem:
        raise InvalidInput(field, f"the file {reference['file']} cannot be read: {problem}") from None
