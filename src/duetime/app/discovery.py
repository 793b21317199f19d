"""Discovery: imports the modules of a package that register tasks."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from duetime.errors import ConfigError
from duetime.task import Tasks


def import_all(name: str) -> list[ModuleType]:
    """The module and, if it is a package, all its modules."""
    if not isinstance(name, str) or not name or name.startswith("."):
        raise ConfigError(f'discover: {name!r} is not a module: write its full name, like "shop.tasks"')
    found = _import(name)
    below = pkgutil.walk_packages(found.__path__, f"{name}.") if hasattr(found, "__path__") else ()
    # A package's __main__ is a program: importing it would run it.
    return [found, *(_import(one.name) for one in below if not one.name.endswith(".__main__"))]


def groups_in(modules: list[ModuleType]) -> Iterator[Tasks]:
    """The groups of tasks in these modules, each once."""
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
            raise ConfigError(
                f"discover: module {name!r} is not on the Python path: "
                "check its name and the current directory"
            ) from problem
        raise
