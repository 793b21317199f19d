"""A class name stands for one thing: it is defined once."""

from __future__ import annotations

from pathlib import Path

import pytest

import duetime
from tests.layers.modules import classes, parse_package

PACKAGE = Path(duetime.__file__).parent
# At most ten, each with a reason.
ALLOWED = {
    "Command": "Django finds management commands by this name",
    "Delivery": "how often a job may run, and a message received from a broker",
    "Node": "the node that runs in this process, and the row of a node in the store",
    "Queue": "the settings of a queue, and the contract of drivers for brokers",
}
MAX_ALLOWED = 10


@pytest.mark.slow
def test_class_names_are_defined_once() -> None:
    trees = {
        name: tree for name, tree in parse_package(PACKAGE).items() if not name.startswith("duetime.testing")
    }
    repeated = {
        name: modules for name, modules in classes(trees).items() if len(modules) > 1 and name not in ALLOWED
    }
    assert not repeated, "\n" + "\n".join(
        f"{name}: {', '.join(modules)}" for name, modules in sorted(repeated.items())
    )


def test_few_class_names_are_allowed_twice() -> None:
    assert len(ALLOWED) <= MAX_ALLOWED
