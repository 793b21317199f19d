"""Groups of tasks, discovery of their modules, middleware and hooks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

import duetime as dt
from duetime.invokers.task import CallNext


@pytest.fixture
def app() -> dt.App:
    return dt.App("memory://")


async def test_a_group_is_registered_without_the_app_and_included_by_it(app: dt.App) -> None:
    tasks = dt.Tasks()

    @tasks.task("double", queue="sums", priority=7)
    async def double(number: int) -> int:
        return 2 * number

    with pytest.raises(dt.NotOpen, match=r"app\.include"):
        await double.submit(number=1)
    app.include(tasks)
    app.include(tasks)
    assert await double(4) == 8
    async with app.running():
        job = await (await double.submit(number=4)).wait("60s")
    assert (job.result, job.queue, job.priority) == (8, "sums", 7)


def test_task_registered_after_include_belongs_to_the_app(app: dt.App) -> None:
    inner, outer = dt.Tasks(), dt.Tasks()
    outer.include(inner)
    app.include(outer)

    @inner.task("late")
    def late() -> None: ...

    assert [group.tasks["late"] for group in (app, outer, inner)] == [late] * 3


def test_task_names_are_unique_over_all_groups(app: dt.App) -> None:
    first, second = dt.Tasks(), dt.Tasks()
    app.include(first)
    first.task("same")(lambda: None)
    second.task("same")(lambda: None)
    second.task("other")(lambda: None)
    with pytest.raises(dt.DuplicateTask, match="same"):
        app.include(second)
    with pytest.raises(dt.DuplicateTask, match="same"):
        app.task("same")(lambda: None)
    app.task("own")(lambda: None)
    with pytest.raises(dt.DuplicateTask, match="own"):
        first.task("own")(lambda: None)
    assert sorted(first.tasks) == ["same"]


def test_only_groups_can_be_included(app: dt.App) -> None:
    group = dt.Tasks()
    for wrong in (app, dt.App("memory://"), None, [group], "tasks"):
        with pytest.raises(dt.InvalidInput, match=r"dt\.Tasks"):
            group.include(wrong)  # type: ignore[arg-type]  # that is the case under test
    other = dt.Tasks()
    group.include(other)
    for circle in ((group, group), (other, group)):
        with pytest.raises(dt.InvalidInput, match="itself"):
            circle[0].include(circle[1])


async def test_one_group_may_serve_several_apps(app: dt.App) -> None:
    tasks = dt.Tasks()

    @tasks.task("work")
    async def work() -> str:
        return "done"

    other = dt.App("memory://")
    app.include(tasks)
    other.include(tasks)
    for one in (app, other):
        async with one.running():
            assert (await (await one.submit(work)).wait("60s")).result == "done"


# -- discovery
# --------------------------------------------------------------------------------------------------------
@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "shop_under_test"
    (folder / "mail").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text("raise SystemExit('a program is not a part')")
    group = "import duetime as dt\ntasks = dt.Tasks()\n@tasks.task({name!r})\ndef work(): pass\n"
    (folder / "orders.py").write_text(group.format(name="orders.ship"))
    (folder / "mail" / "__init__.py").write_text("from shop_under_test.orders import tasks as same\n")
    (folder / "mail" / "send.py").write_text(group.format(name="mail.send"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("shop_under_test")]:
        del sys.modules[name]


def test_discover_imports_every_module_of_a_package(app: dt.App, package: Path) -> None:
    app.discover("shop_under_test")
    app.discover("shop_under_test")
    assert sorted(app.tasks) == ["mail.send", "orders.ship"]


def test_discover_takes_a_single_module(app: dt.App, package: Path) -> None:
    app.discover("shop_under_test.mail.send")
    assert sorted(app.tasks) == ["mail.send"]


@pytest.mark.parametrize("name", ["shop_under_test.nothing", "no_such_package", "", ".orders", None])
def test_discover_names_a_missing_module(app: dt.App, package: Path, name: Any) -> None:
    with pytest.raises(dt.ConfigError, match="discover"):
        app.discover(name)


def test_discover_raises_the_error_of_a_failing_module(app: dt.App, package: Path) -> None:
    (package / "broken").mkdir()
    (package / "broken" / "__init__.py").write_text("import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        app.discover("shop_under_test")


# -- around attempts
# --------------------------------------------------------------------------------------------------
async def test_middleware_and_hooks_of_app_and_group(app: dt.App) -> None:
    seen: list[str] = []
    tasks = dt.Tasks()
    app.include(tasks)

    @app.middleware
    async def outer(ctx: dt.Context, call_next: CallNext) -> Any:
        seen.append("outer begins")
        result = await call_next()
        seen.append("outer ends")
        return result

    @tasks.middleware
    async def inner(ctx: dt.Context, call_next: CallNext) -> Any:
        seen.append("inner")
        return await call_next()

    @app.before_attempt
    def before(ctx: dt.Context) -> None:
        seen.append("before")

    @app.after_attempt
    async def after(ctx: dt.Context, result: Any) -> None:
        seen.append(f"after {result}")

    @app.on_failure
    def failed(ctx: dt.Context, error: BaseException) -> None:
        seen.append(f"failed {error}")

    @tasks.task("grouped")
    async def grouped() -> str:
        return "result"

    @app.task("own", retry=dt.Retry(max_attempts=1))
    async def own() -> None:
        raise ValueError("no")

    async with app.running():
        await (await grouped.submit()).wait("60s", raise_on_failure=True)
        assert seen == ["outer begins", "before", "inner", "after result", "outer ends"]
        seen.clear()
        await (await own.submit()).wait("60s")
        assert seen == ["outer begins", "before", "failed no"]


async def test_resources_live_as_long_as_the_node(app: dt.App) -> None:
    life: list[str] = []

    @app.resource
    async def database() -> AsyncIterator[str]:
        life.append("opened")
        yield "connection"
        life.append("closed")

    @app.task("work")
    async def work(number: int, db: Annotated[str, dt.Use(database)] = dt.INJECTED) -> str:
        return f"{db} {number}"

    async with app.running():
        assert life == []
        for number in range(2):
            job = await (await work.submit(number=number)).wait("60s", raise_on_failure=True)
            assert job.result == f"connection {number}"
        assert life == ["opened"]
    assert life == ["opened", "closed"]


def test_a_resource_that_cannot_be_opened_is_refused(app: dt.App) -> None:
    def database(url: str) -> str:
        return url

    with pytest.raises(dt.InvalidInput, match="url"):
        app.resource(database)
