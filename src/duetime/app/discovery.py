"""Discovery: importing the modules of a package in which tasks are registered."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from duetime.errors import ConfigError
from duetime.task import Tasks


def import_all(name: str) -> list[ModuleType]:
    """The module, and every module of the package if it is one."""
    if not isinstance(name, str) or not name or name.startswith("."):
        raise ConfigError(f'discover: {name!r} is no module: write its full name, like "shop.tasks"')
    found = _import(name)
    below = pkgutil.walk_packages(found.__path__, f"{name}.") if hasattr(found, "__path__") else ()
    # A package's __main__ is a program, not a part.
    return [found, *(_import(one.name) for one in below if not one.name.endswith(".__main__"))]


def groups_in(modules: list[ModuleType]) -> Iterator[Tasks]:
    """The groups of tasks that stand in these modules, each once."""
    seen: set[int] = set()
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Tasks) and not value._is_app and id(value) not in seen:
                seen.add(id(value))
                yield value


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and f"{name}.".startswith(f"{problem.name}."):
            raise ConfigError(f"discover: there is no module {name!r} on the Python path: check its name, and where you start") from problem
        raise
