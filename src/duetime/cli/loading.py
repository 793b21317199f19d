"""Finding the user's App from `module:app`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from duetime.app import App
from duetime.errors import ConfigError, DuetimeError


def load_app(reference: str) -> App:
    module_name, _, attribute = reference.partition(":")
    module = _import(module_name)
    found: Any = module
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        kind = "has no such name" if found is None else f"is a {type(found).__name__}"
        raise ConfigError(f"app: {attribute!r} of {module_name} ({_place(module)}) {kind}: name the variable that holds your App")
    return found


def _import(name: str) -> ModuleType:
    # At the end of the path, so that no file of this folder can stand in for a module of Python's or of ours (S20).
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except DuetimeError:
        raise
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{name}.".startswith(f"{problem.name}."):
            raise ConfigError(f"app: no module {name!r} in {folder} or on the Python path: start in the folder that holds it") from problem
        raise ConfigError(f"app: {name} needs the module {problem.name!r}, which is not installed") from problem
    except Exception as problem:
        raise ConfigError(f"app: importing {name} failed: {type(problem).__name__}: {problem}; --debug shows where") from problem


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "built in"
