"""The pytest plugin: fixtures for virtual time and for inline jobs. It imports and does nothing until a test
requests a fixture.

Name the app with the ini option `duetime_app = package.module:app`, or define your own fixture `duetime_app`.
All fixtures are sync, so they work in sync tests and in async tests of any plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.testing.kit.virtual import VirtualTime


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("duetime_app", "the Duetime app under test, as package.module:app", default="")


@pytest.fixture
def duetime_app(request: pytest.FixtureRequest) -> App:
    """The app named by the ini option `duetime_app`."""
    from pkgutil import resolve_name

    from duetime.app import App

    where = str(request.config.getini("duetime_app"))
    if not where:
        pytest.fail(
            "no app: set `duetime_app = package.module:app` for pytest, or define a fixture duetime_app",
            pytrace=False,
        )
    try:
        app = resolve_name(where)
    except (ImportError, AttributeError, ValueError) as problem:
        pytest.fail(f"duetime_app = {where}: {problem}", pytrace=False)
    if not isinstance(app, App):
        pytest.fail(f"duetime_app = {where} is a {type(app).__name__}, not a Duetime App", pytrace=False)
    return app


@pytest.fixture
def duetime_time(duetime_app: App) -> Iterator[VirtualTime]:
    """The app under virtual time: `await duetime_time.advance("3d")`, or `duetime_time.sync.advance("3d")` in
    a sync test."""
    from duetime.testing.kit.virtual import virtual

    with virtual(duetime_app) as time:
        yield time


@pytest.fixture
def duetime_inline(duetime_app: App) -> Iterator[App]:
    """The app, with jobs that run when they are submitted."""
    from duetime.testing.kit.inline import inline

    with inline(duetime_app):
        yield duetime_app
