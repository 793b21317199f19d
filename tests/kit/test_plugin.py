"""The pytest plugin in a separate project: with pytest-asyncio, with anyio, with neither, and in a project
that does not use it."""

from __future__ import annotations

import pytest

pytest_plugins = "pytester"
pytestmark = pytest.mark.slow  # each test runs pytest in a new process

APP = """
import asyncio
import duetime as dt

app = dt.App("postgresql://user@host.invalid/none")
sent = []

@app.task("invoice.send")
async def send_invoice(ctx: dt.Context, customer: str) -> str:
    for step in range(ctx.last_checkpoint or 0, 3):
        sent.append((ctx.attempt, step))
        await asyncio.sleep(60)
        await ctx.checkpoint(step + 1)
    return f"sent to {customer}"

@app.task("invoice.archive")
def archive(customer: str) -> str:
    return customer.upper()
"""
SYNC_TESTS = """
import shop
from duetime.testing import assert_submitted

def test_time(duetime_time):
    job = shop.app.sync.submit("invoice.send", customer="c1", delay="1d")
    duetime_time.sync.advance("1d")
    assert_submitted(shop.app, "invoice.send", customer="c1", delay="1d", times=1)
    duetime_time.crash_at(shop.send_invoice, checkpoint=2)
    duetime_time.sync.run_until_idle()
    assert job.refresh().result == "sent to c1"
    assert shop.sent == [(1, 0), (1, 1), (2, 2)]

def test_inline(duetime_inline):
    assert duetime_inline is shop.app
    assert shop.app.sync.submit("invoice.archive", customer="c1").result == "C1"

def test_app(duetime_app):
    assert duetime_app is shop.app
    assert not duetime_app.is_open

def test_message(duetime_inline):
    shop.app.sync.submit("invoice.archive", customer="c1")
    assert_submitted(shop.app, "invoice.archive", customer="c2")
"""
ASYNC_TESTS = """
import pytest
import shop
from duetime.testing import assert_submitted

{mark}
async def test_time(duetime_time):
    job = await shop.send_invoice.submit(customer="c1", delay="1d")
    assert_submitted(shop.app, shop.send_invoice, customer="c1")
    await duetime_time.advance("1d")
    assert (await job.refresh()).state == "running"
    await job.wait()
    assert job.result == "sent to c1"

{mark}
async def test_left_running(duetime_time):
    await shop.send_invoice.submit(customer="c1")
    await duetime_time.advance("1m")

{mark}
async def test_untouched(duetime_time):
    duetime_time.now

{mark}
async def test_inline(duetime_inline):
    assert (await shop.archive.submit(customer="c1")).result == "C1"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # Load only the plugins that a test names, not all that are installed.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(shop=APP)
    pytester.makeini("[pytest]\npythonpath = .\nduetime_app = shop:app\nfilterwarnings = error\n")
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "duetime.testing.plugin", "-q", *options)


def test_plugin_works_in_sync_tests(project: pytest.Pytester) -> None:
    project.makepyfile(test_shop=SYNC_TESTS)
    done = run(project)
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *expected at least one job: invoice.archive(customer='c2')",
            "E *- customer = 'c2'",
            "E *+ customer = 'c1'",
        ]
    )
    assert "assertions.py" not in done.stdout.str()


@pytest.mark.parametrize("scope", ["function", "session"])
def test_plugin_works_with_pytest_asyncio(project: pytest.Pytester, scope: str) -> None:
    project.makepyfile(test_shop=ASYNC_TESTS.format(mark="@pytest.mark.asyncio"))
    done = run(
        project,
        "-p",
        "pytest_asyncio.plugin",
        "-o",
        f"asyncio_default_fixture_loop_scope={scope}",
        "-o",
        f"asyncio_default_test_loop_scope={scope}",
    )
    done.assert_outcomes(passed=4)


def test_plugin_works_with_anyio(project: pytest.Pytester) -> None:
    pytest.importorskip("anyio")
    project.makepyfile(test_shop=ASYNC_TESTS.format(mark="@pytest.mark.anyio"), conftest=ANYIO_BACKEND)
    run(project, "-p", "anyio").assert_outcomes(passed=4)


ANYIO_BACKEND = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
OWN_APP = """
import pytest
import duetime as dt

@pytest.fixture
def duetime_app():
    app = dt.App("memory://")

    @app.task("own")
    async def own() -> int:
        return 7

    return app

def test_own(duetime_inline):
    assert duetime_inline.sync.submit("own").result == 7
"""


def test_app_fixture_of_the_user_is_used(project: pytest.Pytester) -> None:
    project.makepyfile(test_own=OWN_APP)
    run(project).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "no app:"),
        ("shop:nothing", "*has no attribute 'nothing'"),
        ("nowhere:app", "*No module named 'nowhere'"),
        ("shop:sent", "*is a list*"),
    ],
)
def test_invalid_app_setting_gives_a_short_error(project: pytest.Pytester, value: str, message: str) -> None:
    project.makeini(f"[pytest]\npythonpath = .\nduetime_app = {value}\n")
    project.makepyfile("def test_it(duetime_app): ...")
    done = run(project)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([f"*{message}*"])


def test_plugin_does_nothing_until_a_fixture_is_requested(project: pytest.Pytester) -> None:
    """The only hook is the one for the option, no fixture is automatic, and the kit is not imported."""
    project.makepyfile(
        """
        import sys

        def test_other_things(request):
            packages = ("duetime.testing.kit", "duetime.testing.simulation")
            assert not [name for name in sys.modules if name.startswith(packages)]
            assert not [name for name in request.fixturenames if "duetime" in name]
        """
    )
    run(project).assert_outcomes(passed=1)
