"""Views: built from rows, written as JSON and read back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest

import duetime as dt
from duetime.model import views
from duetime.model.codec import encode, reader
from duetime.model.views import BulkResult, Page, PlanView, ScheduleView, encode_view, from_json, to_json

AT = datetime(2030, 1, 1, 9, tzinfo=UTC)
SCHEDULE = ScheduleView(
    id=UUID(int=1), name="nightly", version=3, when=dt.Cron("0 9 * * *", tz="Europe/Berlin"), target={"type": "task", "name": "report"},
    queue="default", priority=5, created_at=AT, updated_at=AT,
)  # fmt: skip


def test_a_schedule_is_written_with_its_rule_as_the_api_has_it() -> None:
    written = to_json(SCHEDULE)
    assert written["when"] == {"cron": "0 9 * * *", "tz": "Europe/Berlin"}
    assert written["created_at"] == "2030-01-01T09:00:00Z"


def test_a_page_of_schedules_is_read_back_as_it_was() -> None:
    page = Page([SCHEDULE], "next")
    assert from_json(Page[ScheduleView], encode_view(page)) == page


def test_a_rule_that_cannot_be_read_does_not_hide_the_schedule() -> None:
    stored = {**to_json(SCHEDULE), "when": {"cron": "not cron"}}
    assert from_json(ScheduleView, encode(stored)).name == "nightly"


def test_settings_without_effect_of_an_older_service_are_left_out() -> None:
    """An edit or an export sends the policies back."""
    stored = {
        **to_json(SCHEDULE),
        "missed": {"policy": "latest", "within": "1h", "max": 5},
        "retry": {"max_attempts": 2, "first_delay": "9s", "delays": ["1s"]},
    }
    read = from_json(ScheduleView, encode(stored))
    assert read.missed == {"policy": "latest", "within": "1h", "max": None}
    assert read.retry == {"max_attempts": 2, "first_delay": "5s", "delays": ["1s"]}


def test_fields_of_a_newer_service_are_ignored() -> None:
    assert from_json(ScheduleView, encode({**to_json(SCHEDULE), "mood": "fine"})) == SCHEDULE


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="name"):
        from_json(ScheduleView, encode({**to_json(SCHEDULE), "name": 3}))


def test_every_view_can_be_read_from_json() -> None:
    kinds = [
        kind for name in views.__all__ if is_dataclass(kind := getattr(views, name)) and kind is not Page
    ]
    assert len(kinds) > 30
    for kind in kinds:
        reader(kind)


def test_a_plan_lists_as_many_fires_as_asked_for_and_counts_all() -> None:
    fires = SimpleNamespace(kept=2, added=(AT, AT), withdrawn=(), moved=((AT, AT),))
    source = SimpleNamespace(
        version=1, diff=(SimpleNamespace(field="queue", before="a", after="b"),), words=SimpleNamespace(before=None, after="daily"),
        fires=fires, jobs_withdrawn=4, warnings=("careful",), complete=True,
    )  # fmt: skip
    plan = PlanView.of(source, 1)
    assert (plan.fires.added, plan.counts.added, plan.fires.moved) == ([AT], 2, [{"from": AT, "to": AT}])
    assert (plan.diff[0].field, plan.words.after, plan.warnings, plan.jobs_withdrawn) == (
        "queue",
        "daily",
        ["careful"],
        4,
    )


def test_results_of_bulk_calls_add_up() -> None:
    first = BulkResult(matched=3, done=2, next_cursor="on")
    total = first.followed_by(BulkResult(matched=1, done=1, at_least=True))
    assert (total.matched, total.done, total.at_least, total.next_cursor) == (4, 3, True, None)


def test_a_created_key_does_not_show_its_text_in_its_repr() -> None:
    key = views.CreatedKey(prefix="k3v9q2m7xw", name="billing", created_at=AT, key="dt_secret")
    assert "dt_secret" not in repr(key)
    assert {field.name for field in fields(views.CreatedKey)} >= {"prefix", "key"}
