"""Definitions and cursors: versions, and what an edit withdraws."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.model.ids import SEGMENTS, segment_of
from duetime.model.instant import LATEST
from duetime.model.schedule import Missed, MissedPolicy, Schedule, ScheduleFilter
from duetime.model.when import At, Cron, Every, When
from duetime.store import DueSchedules, Store
from duetime.testing.conformance.drafts import (
    ALL_SEGMENTS,
    DAY,
    HOUR,
    MINUTE,
    TENANT,
    claim,
    claim_one,
    fired,
    job,
    joined,
    known,
    pause_schedule,
    put,
    put_schedule,
    remove_schedule,
    request,
    resume_schedule,
    schedule,
    settle,
    started,
    stored,
    success,
)
from duetime.testing.conformance.submit import AWKWARD

EDITS = ["put", "pause", "remove"]


async def edit(store: Store, how: str) -> Schedule:
    """Withdraw what lies ahead, in each of the ways there are."""
    match how:
        case "put":
            changed = await put_schedule(store, schedule(), await store.time() + DAY, None)
        case "pause":
            changed = await pause_schedule(store, TENANT, "schedule", None)
        case _:
            changed = await remove_schedule(store, TENANT, "schedule")
    assert changed is not None
    return changed


class ScheduleConformance:
    async def test_a_new_schedule(self, store: Store) -> None:
        before, draft = await store.time(), schedule()
        made = await put_schedule(store, draft, before + HOUR, 0)
        assert made is not None
        assert before <= made.created_at <= await store.time()
        at = made.created_at
        assert made == Schedule(
            draft, draft.id, 1, segment_of(draft.id), False, None, before + HOUR, None, 0, at, at
        )
        assert await known(store) == made

    async def test_a_schedule_by_its_id(self, store: Store) -> None:
        made, other = await put(store, schedule(), 1), await put(store, schedule(tenant="other"), 1)
        assert await store.get_schedule(TENANT, made.id) == made
        assert await store.get_schedule(TENANT, other.id) is None
        assert await store.get_schedule("other", other.id) == other
        await remove_schedule(store, TENANT, "schedule")
        assert await store.get_schedule(TENANT, made.id) is None

    @pytest.mark.parametrize(
        "when",
        [
            Cron("30 2 * * MON-FRI", tz="Europe/Berlin"),
            Every("90s", anchor=datetime(2026, 1, 1, tzinfo=UTC)),
            Every("10s"),
            At(datetime(2030, 1, 1, tzinfo=UTC)),
        ],
    )
    async def test_every_field_of_a_schedule_comes_back(self, store: Store, when: When) -> None:
        now = await store.time()
        details: dict[str, Any] = {
            "target": "@http",
            "target_spec": b"{1}",
            "payload": b"\x00\xff",
            "policies": b"{2}",
            "queue": "billing",
            "priority": 9,
            "overlap": "skip",
            "limit_key": "key",
            "missed": Missed("all", within="6h", max=3),
            "jitter": "1s..5s",
            "start_at": now,
            "end_at": now + DAY,
            "max_runs": 7,
            "owner": "owner",
            "labels": b"{3}",
        }
        draft = schedule(when=when, **details)
        await put(store, draft, None)
        found = await known(store)
        assert (found.draft, found.next_fire_time) == (draft, None)

    @pytest.mark.parametrize("policy", ["latest", "skip"])
    async def test_policy_for_missed_fires_of_an_older_version_is_read(
        self, store: Store, policy: MissedPolicy
    ) -> None:
        older = Missed("all", within="6h", max=3)
        object.__setattr__(older, "policy", policy)  # it is refused now
        await put(store, schedule(missed=older), None)
        found = (await known(store)).draft.missed
        assert (found.policy, found.newest) == (policy, Missed(policy).newest)
        assert [
            one.draft.missed.policy for one in await store.list_schedules(ScheduleFilter(TENANT), 10)
        ] == [policy]

    @pytest.mark.parametrize("text", AWKWARD)
    async def test_any_text_of_a_schedule_is_kept(self, store: Store, text: str) -> None:
        draft = schedule(text, tenant=text, queue=text, target=text, owner=text)
        made = await put(store, draft, None)
        assert await store.get_schedule(text, text) == made
        assert await store.list_schedules(ScheduleFilter(text), 10) == [made]
        paused = await pause_schedule(store, text, text, text)
        assert paused is not None
        assert (paused.draft, paused.pause_note) == (draft, text)

    async def test_an_unknown_one(self, store: Store) -> None:
        await put(store, schedule(), None)
        for tenant, name in ((TENANT, "unknown"), ("other", "schedule")):
            assert await store.get_schedule(tenant, name) is None
            assert await store.list_versions(tenant, name, 10) == []
            assert await pause_schedule(store, tenant, name, None) is None
            assert await resume_schedule(store, tenant, name, 0) is None
            assert await remove_schedule(store, tenant, name) is None
        assert (await known(store)).version == 1

    async def test_a_name_belongs_to_its_tenant(self, store: Store) -> None:
        mine, theirs = schedule(), schedule(tenant="other")
        assert (await put(store, mine, None)).id == mine.id
        assert (await put(store, theirs, None)).id == theirs.id
        assert (await known(store)).draft == mine

    async def test_names_in_pages(self, store: Store) -> None:
        names = ["B", "a", "a b", "b", "é", "日本", "🦄"]
        for name in reversed(names):
            await put(store, schedule(name), None)
        await put(store, schedule("c", tenant="other"), None)
        seen: list[str] = []
        while page := await store.list_schedules(ScheduleFilter(TENANT), 3, seen[-1] if seen else None):
            seen += [found.draft.name for found in page]
        assert seen == names


class VersionConformance:
    async def test_creating_twice_fails_the_second_time(self, store: Store) -> None:
        first = await put_schedule(store, schedule(), 1, 0)
        assert await put_schedule(store, schedule(payload=b"second"), 2, 0) is None
        assert await known(store) == first

    async def test_replacing_what_is_not_there_fails(self, store: Store) -> None:
        assert await put_schedule(store, schedule(), 1, 1) is None
        assert await store.get_schedule(TENANT, "schedule") is None

    async def test_replacing_another_version_fails(self, store: Store) -> None:
        await put(store, schedule(), 1)
        second = await put(store, schedule(), 2)
        for version in (0, 1, 3):
            assert await put_schedule(store, schedule(payload=b"late"), 3, version) is None
        assert await known(store) == second

    @pytest.mark.parametrize("expect", [1, None])
    async def test_replacing_keeps_the_identity(self, store: Store, expect: int | None) -> None:
        first = await put(store, schedule(), 1)
        changed = schedule(payload=b"second", queue="other", when=Every("2h"))
        second = await put_schedule(store, changed, 2, expect)
        assert second is not None
        assert second == replace(
            first,
            draft=replace(changed, id=first.id),
            version=2,
            next_fire_time=2,
            updated_at=second.updated_at,
        )
        assert second.updated_at >= first.updated_at
        assert await known(store) == second

    async def test_replacing_keeps_runs_and_pause(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now - HOUR)
        await fired(store, made, now + HOUR, now - HOUR)
        await pause_schedule(store, TENANT, "schedule", "holidays")
        changed = await put(store, schedule(), now + DAY)
        assert (changed.version, changed.runs, changed.paused, changed.pause_note) == (3, 1, True, "holidays")
        assert changed.next_fire_time == now + DAY

    async def test_a_removed_name_can_be_used_again(self, store: Store) -> None:
        first = await put(store, schedule(), 1)
        assert await remove_schedule(store, TENANT, "schedule") is not None
        draft = schedule()
        again = await put_schedule(store, draft, 2, 0)
        assert again is not None
        assert (again.id, again.runs) == (draft.id, 0)
        assert again.id != first.id


class PauseConformance:
    async def test_pausing_stops_planning(self, store: Store) -> None:
        await put(store, schedule(), 1)
        paused = await pause_schedule(store, TENANT, "schedule", "holidays")
        assert paused is not None
        assert (paused.paused, paused.pause_note, paused.version) == (True, "holidays", 2)
        assert await known(store) == paused
        assert await store.list_schedules(DueSchedules(ALL_SEGMENTS, await store.time()), 10) == []

    async def test_resuming_plans_from_the_cursor_given(self, store: Store) -> None:
        await put(store, schedule(), 1)
        await pause_schedule(store, TENANT, "schedule", "holidays")
        resumed = await resume_schedule(store, TENANT, "schedule", 5)
        assert resumed is not None
        assert (resumed.paused, resumed.pause_note, resumed.version, resumed.next_fire_time) == (
            False,
            None,
            3,
            5,
        )
        assert await known(store) == resumed

    async def test_a_cursor_found_for_another_version_resumes_nothing(self, store: Store) -> None:
        """An edit in between has other fires: the caller looks again."""
        await put(store, schedule(), 1)
        paused = await pause_schedule(store, TENANT, "schedule", None)
        assert paused is not None
        edited = await put_schedule(store, schedule(), 7, paused.version)
        assert edited is not None
        assert (
            await resume_schedule(store, TENANT, "schedule", 5, None, paused.version)
            == edited
            == await known(store)
        )
        resumed = await resume_schedule(store, TENANT, "schedule", 6, None, edited.version)
        assert resumed is not None
        assert (resumed.paused, resumed.next_fire_time) == (False, 6)

    async def test_resuming_what_is_not_paused_changes_nothing(self, store: Store) -> None:
        made = await put(store, schedule(), 1)
        assert await resume_schedule(store, TENANT, "schedule", 5) == made
        assert await known(store) == made

    async def test_removing(self, store: Store) -> None:
        made = await put(store, schedule(), 1)
        removed = await remove_schedule(store, TENANT, "schedule")
        assert removed is not None
        assert (removed.id, removed.draft) == (made.id, made.draft)
        assert await store.get_schedule(TENANT, "schedule") is None
        assert await remove_schedule(store, TENANT, "schedule") is None
        assert await store.list_schedules(ScheduleFilter(TENANT), 10) == []


class WithdrawConformance:
    @pytest.mark.parametrize("how", EDITS)
    async def test_fires_ahead_are_withdrawn(self, store: Store, how: str) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now + MINUTE)
        ids = await fired(store, made, now + HOUR, now + MINUTE, now + 2 * MINUTE)
        changed = await edit(store, how)
        assert [await store.get_job(TENANT, job_id) for job_id in ids] == [None, None]
        assert await claim(store, request(node, prefetch=DAY)) == []
        assert changed.runs == 0

    @pytest.mark.parametrize("how", EDITS)
    async def test_fires_that_are_due_stay(self, store: Store, how: str) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now - HOUR)
        [late] = await fired(store, made, now + DAY, now - HOUR)
        changed = await edit(store, how)
        assert (changed.runs, changed.last_fire_time) == (1, now - HOUR)
        assert (await claim_one(store, node, prefetch=DAY)).id == late

    @pytest.mark.parametrize("how", EDITS)
    async def test_jobs_that_have_started_stay(self, store: Store, how: str) -> None:
        """A worker holds it already and waits for its moment."""
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now + MINUTE)
        near, far = await fired(store, made, now + DAY, now + MINUTE, now + HOUR)
        claimed = await claim_one(store, node, prefetch=2 * MINUTE)
        changed = await edit(store, how)
        assert await store.get_job(TENANT, far) is None
        assert (changed.runs, changed.last_fire_time) == (1, now + MINUTE)
        assert claimed.id == near
        assert await settle(store, [success(claimed, now)]) == []

    async def test_jobs_of_others_stay(self, store: Store) -> None:
        now = await store.time()
        await put(store, schedule(), None)
        other = await put(store, schedule("other"), now + HOUR)
        [mine] = await fired(store, other, now + DAY, now + HOUR)
        one_off = job(now + HOUR)
        await store.add_jobs([one_off])
        await edit(store, "put")
        for job_id in (mine, one_off.id):
            await stored(store, job_id)

    async def test_a_job_made_by_hand_stays(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now + HOUR)
        by_hand = job(now, schedule_id=made.id, schedule="schedule")
        await store.add_jobs([by_hand])
        changed = await edit(store, "put")
        assert changed.runs == 0
        await stored(store, by_hand.id)

    async def test_a_running_job_made_by_hand_cannot_be_withdrawn(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now + HOUR)
        await started(store, node, job(now - MINUTE, schedule_id=made.id, schedule="schedule"))
        assert (await edit(store, "put")).last_fire_time == now - MINUTE

    @pytest.mark.parametrize("how", EDITS)
    async def test_without_any_fire_there_is_no_last_one(self, store: Store, how: str) -> None:
        await put(store, schedule(), await store.time() + HOUR)
        changed = await edit(store, how)
        assert (changed.last_fire_time, changed.runs) == (None, 0)

    @pytest.mark.parametrize("how", EDITS)
    async def test_the_last_fire_is_never_in_the_future(self, store: Store, how: str) -> None:
        """Those ahead were withdrawn: the new definition may fire from now on."""
        now = await store.time()
        made = await put(store, schedule(), now - HOUR)
        await fired(store, made, now + DAY, now - HOUR, now + HOUR)
        changed = await edit(store, how)
        assert changed.last_fire_time is not None
        assert now <= changed.last_fire_time <= await store.time()

    async def test_the_last_fire_outlives_its_job(self, store: Store) -> None:
        """Finished and pruned, and still not to be planned again."""
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now - DAY)
        await fired(store, made, now + HOUR, now - DAY)
        assert await settle(store, [success(await claim_one(store, node), now - HOUR)]) == []
        await store.prune(now)
        assert (await edit(store, "put")).last_fire_time == now - DAY

    async def test_withdrawn_fires_can_be_planned_again(self, store: Store) -> None:
        now = await store.time()
        made = await put(store, schedule(), now + HOUR)
        ids = await fired(store, made, now + DAY, now + HOUR)
        changed = await put(store, schedule(payload=b"new"), now + HOUR)
        assert await fired(store, changed, now + DAY, now + HOUR) == ids
        assert (await stored(store, ids[0])).payload == b"new"
        assert (await known(store)).runs == 1

    async def test_history_outlives_the_schedule(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        made = await put(store, schedule(), now)
        [done] = await fired(store, made, now + HOUR, now)
        claimed = await claim_one(store, node)
        await remove_schedule(store, TENANT, "schedule")
        assert await settle(store, [success(claimed, now)]) == []
        assert (await stored(store, done)).schedule_id == made.id


class DueScheduleConformance:
    async def test_oldest_cursor_first(self, store: Store) -> None:
        now = await store.time()
        for age in (2, 3, 1):
            await put(store, schedule(f"{age} h"), now - age * HOUR)
        due = await store.list_schedules(DueSchedules(ALL_SEGMENTS, now), 10)
        assert [found.draft.name for found in due] == ["3 h", "2 h", "1 h"]
        assert due[0] == await known(store, "3 h")
        assert [
            found.draft.name for found in await store.list_schedules(DueSchedules(ALL_SEGMENTS, now), 2)
        ] == [
            "3 h",
            "2 h",
        ]

    async def test_up_to_and_including_the_bound(self, store: Store) -> None:
        now = await store.time()
        await put(store, schedule(), now + HOUR)
        assert await store.list_schedules(DueSchedules(ALL_SEGMENTS, now + HOUR - 1), 10) == []
        assert len(await store.list_schedules(DueSchedules(ALL_SEGMENTS, now + HOUR), 10)) == 1

    async def test_one_without_a_cursor_is_never_due(self, store: Store) -> None:
        await put(store, schedule(), None)
        assert await store.list_schedules(DueSchedules(ALL_SEGMENTS, await store.time() + DAY), 10) == []

    async def test_each_segment_has_its_own(self, store: Store) -> None:
        made = [await put(store, schedule(f"{number}"), 10 + number) for number in range(20)]
        for segment in range(SEGMENTS):
            mine = [found for found in made if found.segment == segment]
            assert await store.list_schedules(DueSchedules([segment], 100), 100) == mine
        assert await store.list_schedules(DueSchedules([], 100), 100) == []

    async def test_a_cursor_far_ahead(self, store: Store) -> None:
        await put(store, schedule(), LATEST - 1)
        [found] = await store.list_schedules(DueSchedules(ALL_SEGMENTS, LATEST), 10)
        assert found.next_fire_time == LATEST - 1
