"""`duetime job` and `duetime dead`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from duetime.stores.sqlite.store import SqliteStore
from duetime.testing.conformance.drafts import HOUR, handed_over, joined, success
from duetime.testing.conformance.drafts import job as draft
from tests.cli.conftest import Duetime
from tests.cli.fleet import Past

SUMMARY = [
    "id", "state", "target", "schedule", "fire_time", "due_at", "queue", "priority", "attempt", "failures",
    "node", "owner", "labels",
    "unique_key", "retry_of", "cancel_requested", "created_at", "claimed_at", "started_at", "finished_at",
    "error", "disposition", "payload", "payload_bytes",
]  # fmt: skip
OWN = [
    "timeout", "retry", "delivery", "expires", "losses", "checkpoint", "progress", "result", "trace_id", "attempts",
]  # fmt: skip
DETAILS = [*SUMMARY, *OWN, "why"]


def test_submit_stores_every_option(duetime: Duetime) -> None:
    done = duetime(
        "job", "submit", "send", "--payload", '{"n": 1}', "--at", "2099-01-01T09:00:00+01:00", "--priority",
        "8", "--queue", "mail",
        "--unique-key", "k1", "--timeout", "5m", "--max-attempts", "3", "--owner", "anna", "--label", "a=b",
        "--label", "c=d=e", "--expires", "2099-02-01T00:00:00Z", "--jitter", "2s..2s",
    )  # fmt: skip
    assert done.status == 0, done.err
    job = duetime("job", "show", done.out.strip(), "--json").json
    assert list(job) == DETAILS
    assert job["payload"] == {"n": 1}
    assert (job["fire_time"], job["priority"], job["queue"]) == ("2099-01-01T08:00:00Z", 8, "mail")
    assert (job["unique_key"], job["owner"], job["labels"]) == ("k1", "anna", {"a": "b", "c": "d=e"})
    assert (job["expires"], job["due_at"]) == ("2099-02-01T00:00:00Z", "2099-01-01T08:00:02Z")
    assert (job["timeout"], job["retry"]["max_attempts"]) == ("5m", 3)


def test_submit_with_taken_unique_key_returns_the_job_that_holds_it(duetime: Duetime) -> None:
    first = duetime("job", "submit", "send", "--unique-key", "k", "--delay", "1h")
    second = duetime("job", "submit", "send", "--unique-key", "k", "--delay", "1h")
    assert second.status == 0
    assert second.out == first.out
    assert "unique key is taken" in second.err


@pytest.mark.parametrize(
    ("way", "conflict", "same", "message"),
    [
        ("skip", "skipped", True, "this is the job that holds it"),
        ("replace", "replaced", False, "replaced by this one"),
        ("reschedule", "rescheduled", True, "was rescheduled"),
    ],
)
def test_submit_reports_the_result_of_a_conflict(
    duetime: Duetime, way: str, conflict: str, same: bool, message: str
) -> None:
    first = duetime("job", "submit", "send", "--unique-key", "k", "--delay", "1h").out.strip()
    again = (
        "job",
        "submit",
        "send",
        "--unique-key",
        "k",
        "--at",
        "2099-01-01T00:00:00Z",
        "--on-conflict",
        way,
    )
    second = duetime(*again, "--json")
    assert second.status == 0, second.err
    assert (second.json["conflict"], second.json["created"], second.json["id"] == first) == (
        conflict,
        not same,
        same,
    )
    assert (second.json["due_at"] == "2099-01-01T00:00:00Z") is (way != "skip")
    assert message in duetime(*again).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--unique-key", "k", "--on-conflict", "panic"], "'panic' is not one of skip, replace, reschedule"),
        (["--on-conflict", "replace"], "on_conflict: "),
        (
            ["--unique-key", "k", "--on-conflict", "skip", "--payload", "[1]"],
            "payload: a task takes named arguments: give an object",
        ),
    ],
)
def test_invalid_conflict_policies_are_refused(duetime: Duetime, arguments: list[str], message: str) -> None:
    done = duetime("job", "submit", "send", *arguments)
    assert (done.status, message in done.err) == (2, True), done.err


def test_payload_keys_named_like_options_stay_in_the_payload(duetime: Duetime) -> None:
    done = duetime("job", "submit", "send", "--payload", '{"queue": "theirs"}', "--queue", "ours", "--json")
    assert (done.json["payload"], done.json["queue"]) == ({"queue": "theirs"}, "ours")


def test_reschedule_changes_time_and_priority_of_a_pending_job(duetime: Duetime, past: Past) -> None:
    job_id = duetime("job", "submit", "send", "--delay", "1h").out.strip()
    moved = duetime("job", "reschedule", job_id, "--at", "2099-01-01T00:00:00Z", "--priority", "9")
    assert (moved.status, "with priority 9" in moved.out) == (0, True), moved.err
    job = duetime("job", "show", job_id, "--json").json
    assert (job["due_at"], job["priority"]) == ("2099-01-01T00:00:00Z", 9)
    assert job["why"] == "waits: it is due at 2099-01-01 00:00 UTC"
    assert duetime("job", "reschedule", job_id).status == 2
    assert duetime("job", "reschedule", job_id, "--delay", "1h", "--at", "2099-01-01T00:00:00Z").status == 2
    assert duetime("job", "reschedule", past.succeeded, "--delay", "1h").status == 1


def test_payload_is_read_from_file_and_stdin(duetime: Duetime, folder: Path) -> None:
    (folder / "p.json").write_text('{"from": "file"}')
    from_file = duetime("job", "submit", "send", "--payload", "@p.json", "--json")
    from_stdin = duetime("job", "submit", "send", "--payload", "-", "--json", stdin='{"from": "stdin"}')
    assert (from_file.json["payload"], from_stdin.json["payload"]) == ({"from": "file"}, {"from": "stdin"})
    assert from_file.json["created"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--payload", "{"], "payload: is not JSON"),
        (["--payload", "NaN"], "payload: NaN is not a JSON number"),
        (["--payload", '{"a": 1, "a": 2}'], "payload: has 'a' twice"),
        (["--payload", "@missing.json"], "payload: 'missing.json' cannot be read"),
        (["--at", "2030-01-01T09:00:00"], "at: '2030-01-01T09:00:00' has no time zone"),
        (["--at", "tomorrow"], "at: 'tomorrow' is not an ISO 8601 instant"),
        (["--at", "2030-01-01T09:00:00Z", "--delay", "1m"], "delay: give either"),
        (["--delay", "soon"], "delay: 'soon' is not a duration"),
        (["--priority", "11"], "priority: 11 must be"),
        (["--priority", "high"], "Invalid value for '--priority'"),
        (["--max-attempts", "0"], "retry.max_attempts: 0 must be"),
        (["--label", "nothing"], "label: 'nothing' must be written name=value"),
        (["--queue", ""], "queue: '' must be 1 to 128"),
        (["--owner", "a\x1bb"], "owner: 'a\\x1bb' must be"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_invalid_submissions_are_usage_errors(duetime: Duetime, arguments: list[str], message: str) -> None:
    done = duetime("job", "submit", "send", *arguments)
    assert done.status == 2
    assert done.err.startswith("error: ")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_invalid_task_name_is_refused(duetime: Duetime) -> None:
    assert duetime("job", "submit", "@http").status == 2


def test_job_list_filters_and_has_stable_fields(duetime: Duetime, past: Past) -> None:
    jobs = duetime("job", "list", "--json").json
    assert [list(job) for job in jobs] == [SUMMARY] * 4
    assert {job["id"] for job in duetime("job", "list", "--state", "dead", "--json").json} == set(past.dead)
    assert duetime("job", "list", "--queue", "other", "--json").json == []
    assert len(duetime("job", "list", "--limit", "2", "--json").json) == 2
    assert duetime("job", "list", "--queue", "other").out == "no jobs\n"


def test_job_list_has_the_size_of_a_payload_that_it_leaves_out(duetime: Duetime) -> None:
    small, large = {"text": "x" * 100}, {"text": "x" * 5_000}
    for payload in (large, small):
        assert duetime("job", "submit", "send", "--payload", json.dumps(payload)).status == 0
    listed = sorted(duetime("job", "list", "--json").json, key=lambda job: job["payload_bytes"])
    assert [job["payload"] for job in listed] == [small, None]
    assert [job["payload_bytes"] for job in listed] == [111, 5_011]
    shown = duetime("job", "show", listed[1]["id"], "--json").json
    assert (shown["payload"], shown["payload_bytes"]) == (large, 5_011)


def test_job_table_shows_full_ids_and_the_utc_offset(
    duetime: Duetime, past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # piped output must not depend on it
    shown = duetime("job", "list").out
    assert all(job_id in shown for job_id in [past.succeeded, *past.dead])
    assert len(shown.splitlines()) == 5
    assert "ago)" in shown or "(now)" in shown


def test_job_show_has_all_details_and_escapes_control_characters(duetime: Duetime, past: Past) -> None:
    good, bad = duetime("job", "show", past.succeeded), duetime("job", "show", past.dead[0])
    assert '{"name": "w\u00f6rld"}' in good.out
    assert '{"hello": "w\u00f6rld"}' in good.out
    assert "attempt 1" in bad.out
    assert "ValueError: bad \\x1b[31mluck" in bad.out
    assert "\x1b" not in bad.out
    raw = duetime("job", "show", past.dead[0], "--json")
    assert raw.out.isascii()
    assert duetime("job", "show", past.succeeded, "--json").out.isascii()
    assert raw.json["attempts"][0]["ending"] == "failed"
    assert (raw.json["checkpoint"], raw.json["progress"]["done"]) == ({"page": 3}, 3)
    assert '{"page": 3}' in bad.out
    assert "3 of 10 (30 %): pages" in bad.out
    assert list(raw.json["attempts"][0]) == [
        "attempt",
        "ending",
        "node",
        "started_at",
        "finished_at",
        "error",
        "result",
    ]


def test_job_can_be_cancelled_only_once(duetime: Duetime) -> None:
    job_id = duetime("job", "submit", "send", "--delay", "1h").out.strip()
    assert duetime("job", "cancel", job_id, "--reason", "wrong month").status == 0
    assert duetime("job", "show", job_id, "--json").json["error"] == "wrong month"
    again = duetime("job", "cancel", job_id)
    assert (again.status, "[job_finished]" in again.err) == (1, True)


@pytest.mark.parametrize("verb", ["show", "cancel", "retry"])
@pytest.mark.parametrize("job_id", ["01935c2e-7b3a-7000-8000-000000000000", "nonsense"])
def test_unknown_jobs_are_not_found(duetime: Duetime, verb: str, job_id: str) -> None:
    duetime("migrate")
    done = duetime("job", verb, job_id)
    assert done.status == 1
    assert "[job_not_found]" in done.err


def test_only_dead_letters_can_be_retried(duetime: Duetime, past: Past) -> None:
    assert duetime("job", "retry", past.succeeded).status == 1
    new = duetime("job", "retry", past.dead[0]).out.strip()
    assert duetime("job", "show", new, "--json").json["retry_of"] == past.dead[0]
    assert duetime("job", "retry", past.dead[0]).status == 1


@pytest.mark.parametrize("group", ["job", "dead"])
def test_dead_letter_is_retried_with_a_new_payload(
    duetime: Duetime, past: Past, folder: Path, group: str
) -> None:
    (folder / "corrected.json").write_text('{"n": 2}')
    new = duetime(group, "retry", past.dead[0], "--payload", "@corrected.json").out.split()[-1]
    job = duetime("job", "show", new, "--json").json
    assert (job["payload"], job["retry_of"]) == ({"n": 2}, past.dead[0])


def test_new_payload_needs_a_single_dead_letter(duetime: Duetime, past: Past) -> None:
    assert duetime("dead", "retry", "--all", "--payload", "{}").status == 2
    assert duetime("dead", "retry", *past.dead, "--payload", "{}").status == 2
    assert duetime("dead", "retry", past.dead[0], "--payload", "{").status == 2
    assert len(duetime("dead", "list", "--json").json) == 3, "nothing was retried"


def test_dead_letters_are_listed_retried_and_discarded(duetime: Duetime, past: Past) -> None:
    assert {job["id"] for job in duetime("dead", "list", "--json").json} == set(past.dead)
    assert "ValueError: bad \\x1b[31mluck" in duetime("dead", "list").out
    mixed = duetime("dead", "discard", past.dead[0], past.succeeded)
    assert (mixed.status, f"{past.dead[0]} discarded" in mixed.out, "[job_finished]" in mixed.err) == (
        1,
        True,
        True,
    )
    assert {job["id"] for job in duetime("dead", "list", "--json").json} == set(past.dead[1:])
    assert duetime("dead", "retry", "--all", "--yes").out == "2 dead letters retried\n"
    assert duetime("dead", "list").out == "no dead letters\n"


def test_discard_all_asks_first(duetime: Duetime, past: Past) -> None:
    assert duetime("dead", "discard", "--all", stdin="n\n").status == 1
    assert len(duetime("dead", "list", "--json").json) == 3
    assert duetime("dead", "discard", "--all", "--yes").status == 0
    assert duetime("dead", "list", "--json").json == []


@pytest.mark.parametrize(
    "arguments", [["retry"], ["retry", "--all", "x"], ["discard"], ["list", "--limit", "0"]]
)
def test_dead_commands_need_ids_or_all(duetime: Duetime, arguments: list[str]) -> None:
    assert duetime("dead", *arguments).status == 2


def test_job_waiting_for_a_report_is_listed_at_its_fire_time(duetime: Duetime, folder: Path) -> None:
    """Not at the deadline of the report, which `job show` has."""

    async def hand_over_two() -> None:
        store = SqliteStore(folder / "duetime.db")
        await store.open()
        await store.migrate()
        node, now = await joined(store), await store.time()
        reported, _ = [
            await handed_over(store, node, draft(now, tenant="default"), now + HOUR) for _ in range(2)
        ]
        assert (await store.settle([success(reported, now)])).refused == []
        await store.close()

    asyncio.run(hand_over_two())
    rows = duetime("job", "list").out.splitlines()[1:]
    assert sorted(row.split()[1] for row in rows) == ["running", "succeeded"]
    assert [row for row in rows if " (in " in row] == []
