"""Schedules declared in code against edits by operators: the policy, the drift, and sets."""

from __future__ import annotations

from typing import Any

import pytest

import duetime as dt


@pytest.fixture
async def client(app: dt.App) -> Any:
    @app.task("work")
    async def work(n: int = 0) -> None: ...

    await app.open()
    yield app
    await app.close()


async def drift(app: dt.App, name: str) -> list[tuple[str, Any, Any]] | None:
    found = (await app.get_schedule(name)).drift
    return None if found is None else [(one.field, one.before, one.after) for one in found]


async def test_edit_by_an_operator_is_an_error_is_kept_or_is_replaced(client: dt.App) -> None:
    await client.schedule("nightly", "work", dt.Every("1h"))
    await client.schedules.edit("nightly", {"priority": 9}, author="operator")
    with pytest.raises(dt.ScheduleExists, match=r'on_conflict="keep" or "replace"'):
        await client.schedule("nightly", "work", dt.Every("1h"), priority=5)
    kept = await client.schedule("nightly", "work", dt.Every("1h"), priority=5, on_conflict="keep")
    assert (kept.version, kept.priority) == (2, 9)
    replaced = await client.schedule("nightly", "work", dt.Every("1h"), priority=5, on_conflict="replace")
    assert (replaced.version, replaced.priority) == (3, 5)


async def test_keep_applies_a_new_release_unless_the_schedule_was_edited(client: dt.App) -> None:
    view = await client.schedule("nightly", "work", dt.Every("1h"), on_conflict="keep")
    for _ in range(2):
        view = await client.schedule("nightly", "work", dt.Every("2h"), on_conflict="keep")
    assert (view.version, view.when) == (2, dt.Every("2h"))
    await client.schedules.edit("nightly", {"when": dt.Every("5m")})
    for hours in (2, 3, 4):
        view = await client.schedule("nightly", "work", dt.Every(f"{hours}h"), on_conflict="keep")
        assert (view.version, view.when) == (3, dt.Every("5m"))
    await client.schedules.edit("nightly", {"when": dt.Every("4h")})  # as declared: no edit any more
    view = await client.schedule("nightly", "work", dt.Every("5h"), on_conflict="keep")
    assert view.when == dt.Every("5h")


async def test_keep_leaves_a_schedule_that_was_not_declared_in_code(client: dt.App) -> None:
    await client.schedules.create(dt.NewSchedule("nightly", "work", dt.Every("1h")))
    assert await drift(client, "nightly") is None
    kept = await client.schedule("nightly", "work", dt.Every("2h"), on_conflict="keep")
    assert kept.when == dt.Every("1h")


async def test_drift_shows_what_is_declared_and_what_is_stored(client: dt.App) -> None:
    await client.schedule("nightly", "work", dt.Every("1h"), payload={"n": 1})
    assert await drift(client, "nightly") == []
    await client.pause("nightly")
    assert await drift(client, "nightly") == []
    await client.schedules.edit("nightly", {"priority": 9, "payload": {"n": 2}})
    assert await drift(client, "nightly") == [("payload", {"n": 1}, {"n": 2}), ("priority", 5, 9)]
    await client.schedule("nightly", "work", dt.Every("1h"), payload={"n": 1}, on_conflict="replace")
    assert await drift(client, "nightly") == []


async def test_removed_schedule_has_no_drift_when_its_name_is_used_again(client: dt.App) -> None:
    await client.schedule("nightly", "work", dt.Every("1h"))
    await client.remove("nightly")
    await client.schedules.create(dt.NewSchedule("nightly", "work", dt.Every("2h")))
    assert await drift(client, "nightly") is None


async def test_set_removes_schedules_that_are_no_longer_declared_in_it(client: dt.App) -> None:
    hourly = dt.Every("1h")
    await client.schedule("alone", "work", hourly)
    await client.declare_schedules("other", [dt.NewSchedule("theirs", "work", hourly)])
    await client.declare_schedules("shop", [dt.NewSchedule(name, "work", hourly) for name in "abc"])
    await client.schedules.edit("c", {"priority": 9})
    views = await client.declare_schedules(
        "shop", [dt.NewSchedule("a", "work", hourly), dt.NewSchedule("d", "work", hourly)]
    )
    assert [view.name for view in views] == ["a", "d"]
    assert [view.name for view in await client.schedules()] == ["a", "alone", "d", "theirs"]
    assert [view.name for view in await client.declare_schedules("shop", [])] == []
    assert [view.name for view in await client.schedules()] == ["alone", "theirs"]


async def test_set_keeps_edits_by_default(client: dt.App) -> None:
    await client.declare_schedules("shop", [dt.NewSchedule("a", "work", dt.Every("1h"))])
    await client.schedules.edit("a", {"priority": 9})
    [kept] = await client.declare_schedules("shop", [dt.NewSchedule("a", "work", dt.Every("2h"))])
    assert (kept.priority, kept.when) == (9, dt.Every("1h"))
    [replaced] = await client.declare_schedules(
        "shop", [dt.NewSchedule("a", "work", dt.Every("2h"))], on_conflict="replace"
    )
    assert (replaced.priority, replaced.when) == (5, dt.Every("2h"))


async def test_set_with_a_mistake_changes_nothing(client: dt.App) -> None:
    good = dt.NewSchedule("a", "work", dt.Every("1h"))
    wrong = dt.NewSchedule("b", "work", dt.Every("1h"), overlap="skp")  # type: ignore[arg-type]
    with pytest.raises(dt.InvalidInput, match="overlap"):
        await client.declare_schedules("shop", [good, wrong])
    with pytest.raises(dt.InvalidInput, match="same name"):
        await client.declare_schedules("shop", [good, good])
    assert await client.schedules() == []


async def test_unknown_policy_is_refused(client: dt.App) -> None:
    with pytest.raises(dt.InvalidInput, match="on_conflict: 'merge' is not one of error, keep, replace"):
        await client.schedule("a", "work", dt.Every("1h"), on_conflict="merge")  # type: ignore[arg-type]
