"""Properties of files of schedules: what is written is read back, a plan comes true, and applying is idempotent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import duetime as dt
from duetime.cli.commands.apply import schema_text
from duetime.cli.documents.changes import Planning, Step, StepAction, apply_step, stored_schedules
from duetime.cli.documents.entry import FIELDS, entry_of, read_entry
from duetime.cli.documents.reading import Collection, Located, read_files
from duetime.cli.documents.source import Document, documents_in
from duetime.cli.documents.writing import Written, document, exported
from duetime.cli.store_backend import StoreBackend
from duetime.config import Settings
from duetime.errors import InvalidDocument
from duetime.model.keyring import KeyRing
from duetime.model.views import ScheduleView

SECRET_KEYS = ("k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",)
Entry = dict[str, Any]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
WORDS = [
    "yes",
    "on",
    "null",
    "~",
    "1e3",
    "-0",
    "1.5",
    "12:30",
    "2030-01-01",
    "0x10",
    "<<",
    "- a",
    "a: b",
    "#c",
    "",
    " x ",
    "é\n\tz",
    "=",
]
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20) | st.sampled_from(WORDS)
JSON = st.recursive(
    SCALARS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.text("abcXYZ019-_./ é:#'\"", min_size=1, max_size=20).filter(lambda name: name == name.strip())
DURATIONS = st.sampled_from(["1s", "90s", "1h30m", "15m", "2d"])
WHENS: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        lambda cron, tz: {"cron": cron, "tz": tz},
        st.sampled_from(
            ["30 2 * * MON-FRI", "*/10 * * * *", "H H * * *", "@daily", "0 9 1 1 *", "0 0 9 1 1 *"]
        ),
        st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    ),
    st.builds(lambda every: {"every": every}, st.sampled_from(["5m", "90s", "1h30m", "2d"])),
    st.just({"every": "7m", "anchor": "2026-01-01T00:03:00Z"}),
    st.just({"at": "2090-06-01T09:00:00Z"}),
    st.just({"rrule": "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "tz": "Europe/Berlin"}),
)
TARGETS = st.one_of(
    st.sampled_from(["report.build", "https://agent.example/run"]),
    st.just({"type": "task", "name": "invoice.send"}),
    st.fixed_dictionaries(
        {"url": st.just("https://agent.example/x?y=1")},
        optional={
            "method": st.sampled_from(["GET", "PUT"]),
            "headers": st.just({"X-Team": "billing"}),
            "secret_headers": st.fixed_dictionaries({"Authorization": st.just({"env": "DT_TOKEN"})}),
            "signing_secret": st.just({"env": "DT_SIGNING"}),
            "timeout": DURATIONS.filter(lambda one: one not in ("1h30m", "2d")),
            "success": st.just(["2xx", 404, "300-302"]),
            "async": st.booleans(),
        },
    ),
    st.just({"type": "command", "argv": ["/bin/sh", "-c", "cd /srv && ./backup > 'x'"], "cwd": "/srv"}),
)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "payload": st.dictionaries(TEXT, JSON, max_size=3),
    "overlap": st.sampled_from(["allow", "skip", "queue", "cancel_previous"]),
    "missed": st.sampled_from(
        ["skip", "latest", {"policy": "all", "within": "6h", "max": 3}, {"within": "90m"}]
    ),
    "jitter": st.sampled_from(["0s", "30s", "1s..5s"]),
    "start_at": st.just("2026-01-01T00:00:00+01:00"),
    "end_at": st.just("2095-01-01T00:00:00Z"),
    "max_runs": st.integers(1, 9),
    "queue": st.sampled_from(["default", "mail", "yes"]),
    "priority": st.integers(0, 9),
    "timeout": DURATIONS,
    "retry": st.sampled_from(
        [
            {"max_attempts": 3},
            {"first_delay": "1m", "multiplier": 3, "jitter": False},
            {"delays": ["1s", "1m"]},
        ]
    ),
    "delivery": st.sampled_from(["at_least_once", "at_most_once"]),
    "expires": DURATIONS,
    "owner": st.sampled_from(["anna", "null", "007"]),
    "labels": st.dictionaries(TEXT, TEXT, max_size=2),
    "paused": st.booleans(),
    "shadow": st.booleans(),
}
ENTRIES: st.SearchStrategy[Entry] = st.fixed_dictionaries(
    {"name": NAMES, "when": WHENS, "target": TARGETS}, optional=OPTIONS
)
FILES = st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry["name"])
# Few names, so that two files often have the same ones.
SAME_NAMES = st.lists(
    st.builds(lambda entry, name: {**entry, "name": name}, ENTRIES, st.sampled_from(["a", "b", "c/d"])),
    max_size=3,
    unique_by=lambda entry: entry["name"],
)
quickly = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DT_TOKEN", "Bearer sesame")
    monkeypatch.setenv("DT_SIGNING", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    ring = KeyRing.parse(SECRET_KEYS)
    monkeypatch.setattr("duetime.cli.store_backend.key_ring", lambda settings, store: ring)
    # An export asks for secrets under names made from those of the schedules: any is found.
    monkeypatch.setattr("duetime.cli.documents.references._read", _any_secret)


def _any_secret(reference: dict[str, str], field: str) -> str:
    signing = "SIGNING" in reference["env"]
    return "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" if signing else "Bearer sesame"


def test_strategies_cover_every_field() -> None:
    assert {"name", "when", "target", *OPTIONS} == set(FIELDS)


@quickly
@given(st.lists(st.dictionaries(TEXT, JSON, max_size=4), max_size=3))
@example([{word: [word] for word in WORDS}])
def test_text_is_read_back_as_written(entries: list[Entry]) -> None:
    [found] = documents_in(document([Written(entry, ["a comment"]) for entry in entries], "shop"), "f")
    assert json.dumps(found.value) == json.dumps({"managed_by": "shop", "schedules": entries})


@quickly
@given(FILES)
def test_entries_fit_the_schema(entries: list[Entry]) -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"managed_by": "shop", "schedules": entries}, schema)
    for entry in entries:
        read_entry(entry)


@quickly
@given(FILES)
def test_export_applied_to_an_empty_store_is_exported_as_the_same(entries: list[Entry]) -> None:
    async def work(first: StoreBackend) -> None:
        await _apply(first, _collected(entries))
        text = await _exported(first)
        jsonschema.validate(next(documents_in(text, "f")).value, json.loads(schema_text()))

        async def again(second: StoreBackend) -> None:
            await _apply(second, _read(text))
            assert await _exported(second) == text
            assert await _actions(second, _read(text)) <= {StepAction.KEEP}

        await _on_memory(again)
        assert await _actions(first, _read(text)) <= {StepAction.KEEP}

    asyncio.run(_on_memory(work))


@quickly
@given(SAME_NAMES, SAME_NAMES)
def test_plan_is_what_applying_then_does(before: list[Entry], after: list[Entry]) -> None:
    async def work(backend: StoreBackend) -> None:
        await _apply(backend, _collected(before))
        was = {one.name: one for one in await stored_schedules(backend)}
        wanted = _collected(after)
        steps = await _apply(backend, wanted, prune=True)
        will_be = {one.name: one for one in await stored_schedules(backend)}
        assert set(will_be) == {entry["name"] for entry in after}
        for step in steps:
            assert _happened(step, was.get(step.name), will_be.get(step.name)), step
        assert await _actions(backend, wanted) <= {StepAction.KEEP}

        async def compare(fresh: StoreBackend) -> None:
            """Nothing of the earlier schedules is left, except for a pause that the file does not name."""
            await _apply(fresh, wanted)
            assert await _unpaused(backend) == await _unpaused(fresh)

        await _on_memory(compare)

    asyncio.run(_on_memory(work))


async def _unpaused(backend: StoreBackend) -> list[Entry]:
    return [{**entry_of(one), "paused": None} for one in await stored_schedules(backend)]


def _happened(step: Step, before: ScheduleView | None, after: ScheduleView | None) -> bool:
    match step.action, before, after:
        case StepAction.ADD, None, ScheduleView():
            return bool(after.version == 1)
        case StepAction.REMOVE, ScheduleView(), None:
            return True
        case StepAction.KEEP, ScheduleView(), ScheduleView():
            return bool(before.version == after.version)
        case StepAction.CHANGE, ScheduleView(), ScheduleView():
            assert step.plan is not None
            old, new = before.to_fields(), after.to_fields()
            changed = {name for name in (*FIELDS[1:-1],) if old[name] != new[name]}
            planned = {one.field for one in step.plan.diff}
            # A new secret is a change of the target that a view does not show.
            return changed <= planned <= {*changed, "target"}
    return False


async def _on_memory(work: Callable[[StoreBackend], Awaitable[None]]) -> None:
    app = dt.App("memory://")
    await app.open()
    try:
        await work(StoreBackend(app, Settings()))
    finally:
        await app.close()


async def _apply(backend: StoreBackend, wanted: Collection, prune: bool = False) -> list[Step]:
    steps = await Planning(backend, "1d", 3).steps(wanted, prune)
    for step in steps:
        await apply_step(backend, step)
    return steps


async def _actions(backend: StoreBackend, wanted: Collection) -> set[StepAction]:
    return {step.action for step in await Planning(backend, "1d", 3).steps(wanted, True)}


async def _exported(backend: StoreBackend) -> str:
    return exported(await stored_schedules(backend))


def _collected(entries: list[Entry], name: str = "shop") -> Collection:
    whole = Document("f", {"schedules": entries}, {})
    return Collection([Located(read_entry(one, name), whole, n) for n, one in enumerate(entries)], {name})


def _read(text: str) -> Collection:
    [found] = documents_in(text, "f")
    return _collected(found.value["schedules"])


def test_files_on_disk_are_read_as_exported(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        document([Written({"name": "x", "when": {"every": "1h"}, "target": "t"})])
    )
    [one] = read_files([str(tmp_path)]).entries
    assert (one.entry.name, one.document.place("schedules", 0)) == ("x", f"{tmp_path / 's.yaml'}:3")


@pytest.mark.parametrize("base", ["{}", "{k: 1}"])
def test_merges_of_merges_are_bounded(base: str) -> None:
    """Each level takes the one before nine times, which takes minutes unless merges are counted."""
    levels = [f"a0: &a0 {base}"]
    levels += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
    with pytest.raises(InvalidDocument, match="too many"):
        list(documents_in("\n".join(levels), "f"))


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "1e999"])
def test_number_with_too_many_digits_is_named(number: str) -> None:
    with pytest.raises(InvalidDocument, match="f:2: is a number with too many digits"):
        list(documents_in(f"a: 1\nb: {number}", "f"))
