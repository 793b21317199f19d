"""Secrets in files of schedules: never their values, only where they are: `{env: NAME}` or `{file: PATH}`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from duetime.cli.files import read_text
from duetime.errors import InvalidInput
from duetime.model.headers import is_secret
from duetime.model.target import HIDDEN, SIGNING

FORM = "{env: NAME} or {file: PATH}"
Reference = Mapping[str, str]


def with_secrets(target: Mapping[str, Any], secret: Callable[[Reference, str], str]) -> dict[str, Any]:
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


def placeholder(schedule: str, name: str) -> Reference:
    """What an export writes for a secret that it cannot know."""
    words = re.sub(r"[^A-Z0-9]+", "_", f"secret_{schedule}_{name}".upper())
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
