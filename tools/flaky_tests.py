"""A pytest plugin for the repetition of tests that failed: it lists those that pass now, and fails the run if
there are more than MAX_FLAKY."""

from __future__ import annotations

import pytest

MAX_FLAKY = 2
FAILED_BEFORE = pytest.StashKey[set[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    assert session.config.cache is not None
    session.config.stash[FAILED_BEFORE] = set(session.config.cache.get("cache/lastfailed", {}))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    if len(_flaky(reporter)) > MAX_FLAKY and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    flaky, stats = _flaky(terminalreporter), terminalreporter.stats
    if not flaky:
        return
    terminalreporter.section("failed, and passed when repeated", yellow=True)
    for report in flaky:
        terminalreporter.line(f"FLAKY {report.nodeid}")
    if len(flaky) > MAX_FLAKY:
        terminalreporter.line(f"{len(flaky)} tests are flaky, more than {MAX_FLAKY}: they count as failed")
        for report in flaky:
            report.outcome = "failed"
        stats["passed"] = [report for report in stats["passed"] if report not in flaky]
        stats["failed"] = [*stats.get("failed", ()), *flaky]


def _flaky(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    before = reporter.config.stash[FAILED_BEFORE]
    return [report for report in reporter.stats.get("passed", ()) if report.nodeid in before]
