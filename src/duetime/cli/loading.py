"""Find the user's App: `module:app`, a module that holds one App, or a package whose module `app` or
`tasks` holds it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from duetime.app import App
from duetime.errors import ConfigError, DuetimeError

USUAL_MODULES = ("app", "tasks")  # of a package, with its App and its tasks


def load_app(reference: str) -> App:
    module_name, colon, attribute = reference.partition(":")
    module = _import(module_name)
    return _named(module, module_name, attribute) if colon else _only(module, module_name)


def load_object(reference: str) -> Any:
    """The object that "module:name" names."""
    module_name, _, attribute = reference.partition(":")
    found: Any = _import(module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigError(f"{reference}: {module_name} has no {attribute!r}: write module:name")
        found = getattr(found, name)
    return found


def _named(module: ModuleType, module_name: str, attribute: str) -> App:
    found: Any = module
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        where = f"{module_name} ({_place(module)})"
        wrong = (
            f"{where} has no {attribute!r}"
            if found is None
            else f"{attribute!r} of {where} is a {type(found).__name__}"
        )
        raise ConfigError(f"app: {wrong}: name the variable that holds your App")
    return found


def _only(module: ModuleType, module_name: str) -> App:
    """The only App of the module or package; it may have several names there."""
    looked_in = [module, *_usual_modules(module, module_name)]
    found = {
        id(app): (app, f"{one.__name__}:{name}") for one in reversed(looked_in) for name, app in _apps(one)
    }
    if len(found) == 1:
        return next(iter(found.values()))[0]
    if found:
        names = ", ".join(sorted(name for _, name in found.values()))
        raise ConfigError(f"app: {module_name} has several Apps: name one of {names}")
    places = ", ".join(one.__name__ for one in looked_in)
    raise ConfigError(
        f"app: there is no App in {places} ({_place(module)}): name the module that has `app = dt.App(...)`"
    )


def _usual_modules(module: ModuleType, module_name: str) -> list[ModuleType]:
    if not hasattr(module, "__path__"):
        return []
    names = [f"{module_name}.{last}" for last in USUAL_MODULES]
    return [_import(name) for name in names if importlib.util.find_spec(name) is not None]


def _apps(module: ModuleType) -> Iterator[tuple[str, App]]:
    return ((name, value) for name, value in vars(module).items() if isinstance(value, App))


def search_this_folder() -> str:
    """At the end of the path, so that no file of this folder can replace a module of Python or of Duetime."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    return folder


def _import(name: str) -> ModuleType:
    folder = search_this_folder()
    if "/" in name:
        raise ConfigError(_not_found(name, folder))
    try:
        return importlib.import_module(name)
    except DuetimeError:
        raise
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{name}.".startswith(f"{problem.name}."):
            raise ConfigError(_not_found(name, folder)) from problem
        raise ConfigError(
            f"app: {name} needs the module {problem.name!r}, which is not installed"
        ) from problem
    except SyntaxError as problem:
        place = f"{problem.filename}, line {problem.lineno}"
        raise ConfigError(
            f"app: importing {name} failed: {type(problem).__name__}: {problem.msg} ({place})"
        ) from problem
    except Exception as problem:
        raise ConfigError(
            f"app: importing {name} failed: {type(problem).__name__}: {problem}; --debug shows where"
        ) from problem


def _not_found(name: str, folder: str) -> str:
    if name.endswith(".py") or "/" in name:
        module = name.removesuffix(".py").strip("./").replace("/", ".")
        return f"app: {name!r} is a file: write its module, {module!r}"
    return f"app: no module {name!r} in {folder} or on the Python path: start in the folder that holds it"


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "built in"
