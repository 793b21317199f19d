"""Common mistakes are refused where they are made, and the error says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import duetime as dt


@pytest.fixture
def app() -> dt.App:
    return dt.App("memory://")


@pytest.fixture
def report(app: dt.App) -> dt.Task[..., Any]:
    @app.task("report")
    def report(kind: str, pages: int = 1) -> str:
        return kind

    return report


async def test_a_misspelt_argument_is_named_beside_the_one_that_is_missing(
    app: dt.App, report: dt.Task[..., Any]
) -> None:
    await app.open()
    with pytest.raises(
        dt.InvalidInput, match=r"kind: is required by task 'report'; 'knd' is not an argument of it"
    ):
        await report.submit(knd="daily")
    with pytest.raises(dt.InvalidInput, match=r"kind: is required by task 'report'$"):
        await report.submit()


async def test_arguments_given_to_a_schedule_as_options_are_told_from_those_that_are_missing(
    app: dt.App, report: dt.Task[..., Any]
) -> None:
    await app.open()
    with pytest.raises(
        dt.InvalidInput, match=r"kind: is an argument of the task: write payload=\{'kind': \.\.\.\}"
    ):
        await app.schedule("daily", report, dt.Every("1d"), kind="daily")  # type: ignore[call-arg]
    with pytest.raises(dt.InvalidInput, match=r"paylod: no such option: did you mean 'payload'\?"):
        await app.schedule("daily", report, dt.Every("1d"), paylod={"kind": "daily"})  # type: ignore[call-arg]


async def test_payload_as_a_whole_is_refused_by_submit_of_an_unregistered_task(app: dt.App) -> None:
    await app.open()
    with pytest.raises(
        dt.InvalidInput, match=r"payload: task 'elsewhere' .* as keywords, .*dt\.NewJob\('elsewhere', "
    ):
        await app.submit("elsewhere", payload={"kind": "daily"})
    assert await app.jobs() == []
    for job in (
        await app.submit("elsewhere", kind="daily"),
        *await app.submit_many([dt.NewJob("elsewhere", {"kind": "daily"})]),
    ):
        await job.refresh()
        assert job.payload == {"kind": "daily"}


async def test_registered_task_may_have_an_argument_named_payload(app: dt.App) -> None:
    @app.task("store")
    def store(payload: dict[str, int]) -> None: ...

    await app.open()
    for job in (await app.submit("store", payload={"a": 1}), await store.submit(payload={"a": 1})):
        await job.refresh()
        assert job.payload == {"payload": {"a": 1}}


async def test_text_is_refused_as_when(app: dt.App, report: dt.Task[..., Any]) -> None:
    await app.open()
    when: Any = "0 9 * * *"
    with pytest.raises(dt.InvalidInput, match=r"when: .* write it like dt\.Cron"):
        await app.schedule("daily", report, when, payload={"kind": "daily"})


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (dt.NewJob("report", {"pages": 1}), "kind"),
        (dt.NewJob("report", {"kind": "daily"}, delay="soon"), "delay"),
        (dt.NewJob("report", {"kind": "daily"}, priority=10), "priority"),
    ],
)
async def test_bulk_error_names_the_wrong_job(
    app: dt.App, report: dt.Task[..., Any], wrong: dt.NewJob, field: str
) -> None:
    await app.open()
    good = dt.NewJob("report", {"kind": "daily"})
    with pytest.raises(dt.InvalidInput) as told:
        await app.submit_many([good, good, wrong, good])
    assert told.value.field == f"jobs[2].{field}"


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("limit", lambda app: app.jobs(limit=10**30)),
        ("limit", lambda app: app.schedules(limit=2**63)),
        ("max_runs", lambda app: app.schedule("daily", "report", dt.Every("1d"), max_runs=10**30)),
        ("queue", lambda app: app.jobs(queue="\0")),
        ("schedule", lambda app: app.jobs(schedule="\ud800")),
    ],
)
async def test_unstorable_text_is_refused(app: dt.App, field: str, call: Callable[[dt.App], Any]) -> None:
    await app.open()
    with pytest.raises(dt.InvalidInput) as told:
        await call(app)
    assert told.value.field == field


def test_decorator_without_a_name_is_refused(app: dt.App) -> None:
    def build_report() -> None: ...

    register: Any = app.task  # as a decorator without brackets
    with pytest.raises(dt.InvalidInput, match=r'name: .* write @app\.task\("build_report"\)'):
        register(build_report)


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize("function", [generator, async_generator])
def test_generator_is_refused_as_task(app: dt.App, function: Callable[..., Any]) -> None:
    with pytest.raises(dt.InvalidInput, match="tasks cannot be generators"):
        app.task("numbers")(function)


def test_duplicate_task_names_the_first_function(app: dt.App, report: dt.Task[..., Any]) -> None:
    with pytest.raises(dt.DuplicateTask, match=r"by .*report \(.*test_mistakes\.py, line \d+\)"):
        app.task("report")(lambda: None)


SCHEDULE = dt.NewSchedule("nightly", "report", dt.Every("1d"))


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("submit_many", dt.NewJob("report"), r"^jobs: NewJob\(.* is not a list: write \[dt\.NewJob\("),
        ("submit_many", "report", r"^jobs: 'report' is not a list: write \[dt\.NewJob\("),
        (
            "submit_many",
            [dt.NewJob("report"), "report"],
            r"^jobs\[1\]: 'report' is not a NewJob: write dt\.NewJob\(",
        ),
        ("declare_schedules", SCHEDULE, r"^schedules: .* is not a list: write \[dt\.NewSchedule\("),
        (
            "declare_schedules",
            [SCHEDULE, "weekly"],
            r"^schedules\[1\]: 'weekly' is not a NewSchedule: write ",
        ),
        ("declare_schedules", None, "^schedules: None is not a list: write "),
    ],
)
async def test_anything_but_a_list_of_new_ones_is_refused(
    app: dt.App, call: str, given: Any, message: str
) -> None:
    await app.open()
    before = () if call == "submit_many" else ("reports",)
    with pytest.raises(dt.InvalidInput, match=message):
        await getattr(app, call)(*before, given)
    with pytest.raises(dt.InvalidInput, match=message):
        getattr(app.sync, call)(*before, given)
    assert (await app.jobs(), await app.schedules()) == ([], [])
    app.sync.close()


@pytest.mark.parametrize("store", [Path("duetime.db"), 7])
def test_path_is_refused_as_store(store: Any) -> None:
    with pytest.raises(
        dt.ConfigError, match=r'store: .* is neither a URL nor a store: use "memory://", "sqlite:///file.db"'
    ):
        dt.App(store)


@pytest.mark.filterwarnings("error")
async def test_run_inside_an_event_loop_says_what_to_await(app: dt.App) -> None:
    with pytest.raises(dt.Conflict, match=r"await app\.run_async\(\)"):
        app.run()


def test_exception_name_is_refused_in_retry_on() -> None:
    names: Any = "ValueError"
    with pytest.raises(dt.InvalidInput, match=r"retry\.retry_on: 'ValueError' is not an exception type"):
        dt.Retry(retry_on=names)
