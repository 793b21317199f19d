"""Finding jobs and schedules by label, instant and name, and counting no further than asked."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.model.codec import encode
from duetime.model.job import MAX_ERROR_LINE, JobFilter, State
from duetime.model.schedule import ScheduleFilter
from duetime.model.search import error_group
from duetime.model.target import HTTP, LISTED
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    HOUR,
    TENANT,
    add,
    death,
    finished,
    job,
    jobs,
    joined,
    pause_schedule,
    put,
    retry_later,
    schedule,
    settle,
    started,
)
from duetime.testing.conformance.listing import names
from duetime.testing.conformance.submit import AWKWARD

TRICKY = [*AWKWARD, "a.b", '"', "\\", "$", "[0]", "'", "a b", "%", "_", "🦄"]


async def schedule_names(
    store: Store, limit: int = 100, after_name: str | None = None, **wanted: Any
) -> list[str]:
    found = await store.list_schedules(ScheduleFilter(**{"tenant": TENANT, **wanted}), limit, after_name)
    return [one.draft.name for one in found]


class JobSearchConformance:
    @pytest.mark.parametrize("past", [False, True])
    async def test_by_label(self, store: Store, past: bool) -> None:
        node, now = await joined(store), await store.time()
        labels = {
            "both": {"a": "1", "b": "2"},
            "other value": {"a": "2"},
            "other key": {"b": "1"},
            "none": {},
        }
        drafts = [job(now, owner=name, labels=encode(value)) for name, value in labels.items()]
        for draft in (*drafts, job(now, owner="without")):
            await (finished(store, node, draft, now) if past else add(store, draft))
        assert await names(store, label=("a", "1")) == ["both"]
        assert await names(store, label=("b", "2")) == ["both"]
        assert await names(store, label=("c", "1")) == []

    @pytest.mark.parametrize("past", [False, True])
    async def test_http_targets_have_one_name(self, store: Store, past: bool) -> None:
        """Which nodes may call an address is not the matter of callers."""
        node, now = await joined(store), await store.time()
        for target in (HTTP, LISTED, "task"):
            draft = job(now, owner=target, target=target)
            await (finished(store, node, draft, now) if past else add(store, draft))
            await put(store, schedule(name=target, target=target), now + HOUR)
        assert set(await names(store, target=HTTP)) == {HTTP, LISTED}
        assert await names(store, target=LISTED) == [LISTED]
        assert await names(store, target="task") == ["task"]
        assert await schedule_names(store, target=HTTP) == [HTTP, LISTED]
        assert await schedule_names(store, target="task") == ["task"]

    async def test_any_text_is_a_label(self, store: Store) -> None:
        now = await store.time()
        await store.add_jobs(
            [job(now, owner=f"{at}", labels=encode({text: text, "x": "y"})) for at, text in enumerate(TRICKY)]
        )
        for at, text in enumerate(TRICKY):
            assert await names(store, label=(text, text)) == [f"{at}"]

    async def test_a_label_beside_other_conditions(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        label = encode({"a": "1"})
        await finished(store, node, job(now, owner="dead", labels=label), now, State.DEAD)
        await add(store, job(now, owner="here", queue="here", labels=label))
        await add(store, job(now, owner="there", queue="there", labels=label))
        assert await names(store, label=("a", "1"), queue="here") == ["here"]
        assert await names(store, label=("a", "1"), undisposed=True) == ["dead"]

    @pytest.mark.parametrize("past", [False, True])
    async def test_by_fire_time(self, store: Store, past: bool) -> None:
        """To the microsecond, and whatever they are due."""
        node, now = await joined(store), await store.time()
        for hour in range(4):
            draft = job(now, fire_time=now - hour * HOUR, owner=f"{hour} h")
            await (finished(store, node, draft, now) if past else add(store, draft))
        assert await names(store, fire_after=now - HOUR) == ["0 h", "1 h"]
        assert await names(store, fire_after=now - HOUR + 1) == ["0 h"]
        assert await names(store, fire_before=now - 2 * HOUR) == ["3 h"]
        assert await names(store, fire_before=now - 2 * HOUR + 1) == ["2 h", "3 h"]
        assert await names(store, fire_after=now - 2 * HOUR, fire_before=now) == ["1 h", "2 h"]

    async def test_pages_of_labelled_jobs(self, store: Store) -> None:
        now = await store.time()
        drafts = [job(now - at * 250, labels=encode({"half": "yes" if at % 2 else "no"})) for at in range(40)]
        await store.add_jobs(drafts)
        wanted = JobFilter(TENANT, label=("half", "yes"), fire_after=now - 30 * 250)
        seen, before = [], None
        while listed := await store.list_jobs(wanted, 4, before):
            seen += [found.id for found in listed]
            before = listed[-1].id
        assert seen == [draft.id for draft in drafts[1:31:2]]


TRACE = (
    'Traceback (most recent call last):\n  File "/srv/shop/orders.py", line {}, in ship\n    raise ...\n{}'
)
ERRORS = (
    TRACE.format(17, "ValueError: order 17 has no address"),
    TRACE.format(30, "ValueError: order 2f-9 has no address\n"),
    TRACE.format(17, "KeyError: 'a'"),
    TRACE.format(17, "KeyError: 'b \"c'"),
    TRACE.format(17, "ValueError: order 17 has no address").replace("in ship", "in bill"),
    "ValueError: order 5 has no address",
    "ValueError: order five has no address",
    'File "plain.py", line 1, in <module>\nStop 1.5',
    "HTTP 503 Service Unavailable from GET https://a.example/7",
    "HTTP 404 Not Found from GET https://a.example/7",
    "it can't read \"x\" or 'y' and isn't 100 %",
    "x" * MAX_ERROR_LINE + "1",
    "5\u0665 \u00bd",
    "",
)


class ErrorSearchConformance:
    @pytest.mark.parametrize("past", [False, True])
    async def test_by_a_part_of_the_error(self, store: Store, past: bool) -> None:
        node, now = await joined(store), await store.time()
        decide = death if past else retry_later
        for at, error in enumerate(("boom", "where\nBOOM", "bo%m", "boo_", None)):
            claimed = await started(store, node, job(now, fire_time=now - at, owner=f"{at}"))
            assert await settle(store, [decide(claimed, now)._replace(error=error)]) == []
        assert await names(store, error="Oom") == ["0", "1"]
        assert await names(store, error="where") == ["1"]
        assert await names(store, error="o%m") == ["2"]
        assert await names(store, error="o_") == ["3"]
        assert await store.count_jobs(JobFilter(TENANT, error="boo"), 2) == 2

    @pytest.mark.parametrize("text", [*TRICKY, "'; --"])
    async def test_any_text_is_an_error(self, store: Store, text: str) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now, owner="this"))
        await settle(store, [death(claimed, now, error=f"before\n{text}")])
        assert await names(store, error=text, undisposed=True) == ["this"]
        assert await names(store, error_group=error_group(text), undisposed=True) == ["this"]

    async def test_errors_of_one_cause_are_one_group(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for at, error in enumerate(ERRORS):
            claimed = await started(store, node, job(now, fire_time=now - at, owner=f"{at}"))
            await settle(store, [death(claimed, now, error=error)])
        for error in ERRORS:
            group = error_group(error)
            same = [f"{at}" for at, other in enumerate(ERRORS) if error_group(other) == group]
            assert await names(store, error_group=group) == same, group


class PayloadSearchConformance:
    @pytest.mark.parametrize(
        ("field", "value", "found"),
        [
            ("customer", "c-1", ["0"]),
            ("customer", "c", []),
            ("order.id", "17", ["0", "1"]),
            ("order.id", "17.0", ["0"]),
            ("order", '{"id": 17}', ["0"]),
            ("paid", "true", ["0"]),
            ("paid", "1", ["1"]),
            ("note", "null", ["2"]),
            ("note", "'; --", ["1"]),
            ("lines.1", "b", ["2"]),
            ("missing", "null", []),
            ("", "x", []),
        ],
    )
    async def test_by_a_field_of_the_payload(
        self, store: Store, field: str, value: str, found: list[str]
    ) -> None:
        now = await store.time()
        payloads = (
            {"customer": "c-1", "order": {"id": 17}, "paid": True},
            {"customer": "C-1", "order": {"id": "17"}, "paid": 1, "note": "'; --"},
            {"note": None, "lines": ["a", "b"]},
            ["c-1"],
        )
        await store.add_jobs(
            [
                job(now, fire_time=now - at, owner=f"{at}", payload=encode(payload))
                for at, payload in enumerate(payloads)
            ]
        )
        assert await names(store, payload=(field, value)) == found
        assert await store.count_jobs(JobFilter(TENANT, payload=(field, value)), 10) == len(found)


class MatchingConformance:
    async def test_counting_what_matches(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(3):
            await finished(store, node, job(now - HOUR), now, State.DEAD)
        await store.add_jobs([*jobs(4, now), *jobs(2, now, queue="other"), job(now, tenant="other")])
        await started(store, node, job(now - HOUR))
        assert await store.count_jobs(JobFilter(TENANT), 100) == 10
        assert await store.count_jobs(JobFilter(TENANT, undisposed=True), 100) == 3
        assert await store.count_jobs(JobFilter(TENANT, queue="other"), 100) == 2
        assert (
            await store.count_jobs(JobFilter(TENANT, states=frozenset({State.PENDING, State.DEAD})), 100) == 9
        )
        assert await store.count_jobs(JobFilter(TENANT, states=frozenset({State.RUNNING})), 100) == 1
        assert await store.count_jobs(JobFilter(TENANT, states=frozenset()), 100) == 0
        assert await store.count_jobs(JobFilter("unknown"), 100) == 0

    async def test_counting_no_further_than_asked(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(3):
            await finished(store, node, job(now - HOUR), now)
        await store.add_jobs(jobs(5, now))
        assert [await store.count_jobs(JobFilter(TENANT), most) for most in (0, 1, 4, 8, 9)] == [
            0,
            1,
            4,
            8,
            8,
        ]


class ScheduleSearchConformance:
    async def test_schedules_by_a_part_of_the_name(self, store: Store) -> None:
        for name in ("Invoice send", "invoice.check", "nightly 100% INVOICES", "report_a", "report-b"):
            await put(store, schedule(name), None)
        await put(store, schedule("invoice", tenant="other"), None)
        assert await schedule_names(store, text="invoice") == [
            "Invoice send",
            "invoice.check",
            "nightly 100% INVOICES",
        ]
        assert await schedule_names(store, text="INVOICE.") == ["invoice.check"]
        assert await schedule_names(store, text="t_a") == ["report_a"]
        assert await schedule_names(store, text="0%") == ["nightly 100% INVOICES"]
        assert len(await schedule_names(store, text="")) == 5
        assert await schedule_names(store, text="\\") == []

    @pytest.mark.parametrize("text", AWKWARD)
    async def test_schedules_by_any_text(self, store: Store, text: str) -> None:
        await put(store, schedule(f"a{text}b"), None)
        assert await schedule_names(store, text=text) == [f"a{text}b"]

    async def test_schedules_by_pause(self, store: Store) -> None:
        for name in ("on", "off"):
            await put(store, schedule(name), None)
        await pause_schedule(store, TENANT, "off", None)
        assert await schedule_names(store, paused=True) == ["off"]
        assert await schedule_names(store, paused=False) == ["on"]
        assert await schedule_names(store) == ["off", "on"]

    @pytest.mark.parametrize("field", ["owner", "target", "queue"])
    async def test_schedules_by_field(self, store: Store, field: str) -> None:
        for value in ("a", "b"):
            await put(store, schedule(f"{field} {value}", **{field: value}), None)
        chosen: dict[str, Any] = {field: "a"}
        assert await schedule_names(store, **chosen) == [f"{field} a"]
        assert await schedule_names(store, **{**chosen, field: "c"}) == []

    async def test_schedules_by_label(self, store: Store) -> None:
        for at, text in enumerate(TRICKY):
            await put(
                store,
                schedule(f"{at:02}", labels=encode({text: text, "even": "no" if at % 2 else "yes"})),
                None,
            )
        await put(store, schedule("without"), None)
        for at, text in enumerate(TRICKY):
            assert await schedule_names(store, label=(text, text)) == [f"{at:02}"]
        assert await schedule_names(store, label=("even", "no")) == [
            f"{at:02}" for at in range(1, len(TRICKY), 2)
        ]

    async def test_pages_of_schedules_that_match(self, store: Store) -> None:
        for number in range(12):
            await put(store, schedule(f"{number:02}", queue="even" if number % 2 == 0 else "odd"), None)
        seen: list[str] = []
        while page := await schedule_names(store, 4, seen[-1] if seen else None, queue="odd"):
            assert len(page) <= 4
            seen += page
        assert seen == ["01", "03", "05", "07", "09", "11"]
