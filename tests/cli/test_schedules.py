"""`duetime schedule`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Duetime

FIELDS = [
    "id", "name", "version", "when", "description", "target", "payload", "queue", "priority", "timeout",
    "retry", "delivery", "expires", "owner",
    "labels", "overlap", "missed", "jitter", "start_at", "end_at", "max_runs", "paused", "pause_note",
    "runs", "next_fire_time",
    "last_fire_time", "created_at", "updated_at", "drift", "warning",
]  # fmt: skip


def add(duetime: Duetime, name: str = "nightly", *options: str) -> None:
    done = duetime(
        "schedule", "add", name, "report", *(options or ("--cron", "30 2 * * *", "--tz", "Europe/Berlin"))
    )
    assert done.status == 0, done.err


def test_schedule_add_stores_every_option(duetime: Duetime) -> None:
    done = duetime(
        "schedule", "add", "nightly", "report", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--payload",
        '{"a": 1}', "--overlap",
        "skip", "--missed", "all", "--within", "6h", "--jitter", "1s..5s", "--start-at", "2030-01-01T00:00:00Z",
        "--end-at",
        "2031-01-01T00:00:00Z", "--max-runs", "9", "--queue", "slow", "--priority", "2", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert list(done.json) == FIELDS
    assert done.json["when"] == {"cron": "30 2 * * *", "tz": "Europe/Berlin"}
    assert done.json["missed"] == {"policy": "all", "within": "6h", "max": None}
    fields = ("overlap", "jitter", "max_runs", "queue", "priority", "payload")
    assert [done.json[name] for name in fields] == ["skip", "1s..5s", 9, "slow", 2, {"a": 1}]
    assert done.json["next_fire_time"] == "2030-01-01T01:30:00Z"
    assert duetime("schedule", "show", "nightly", "--json").json == done.json


@pytest.mark.parametrize(
    ("options", "when"),
    [
        (["--every", "5m"], {"every": "5m"}),
        (["--at", "2099-01-01T00:00:00Z"], {"at": "2099-01-01T00:00:00Z"}),
        (
            ["--rrule", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"],
            {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "tz": "UTC"},
        ),
    ],
)
def test_schedule_add_accepts_every_at_and_rrule(
    duetime: Duetime, options: list[str], when: dict[str, str]
) -> None:
    assert duetime("schedule", "add", "s", "t", *options, "--json").json["when"] == when


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "use one of --cron, --every, --at, --rrule"),
        (["--cron", "* * * * *", "--every", "5m"], 2, "--cron and --every given"),
        (["--every", "5m", "--tz", "UTC"], 2, "tz: does not apply to --every"),
        (["--cron", "61 * * * *"], 2, "[when_invalid]"),
        (["--cron", "* * * * *", "--tz", "Mars/Base"], 2, "[zone_unknown]"),
        (["--cron", "0 0 30 2 *"], 1, "[when_never_fires]"),
        (["--at", "2001-01-01T00:00:00Z"], 1, "[when_never_fires]"),
        (["--every", "5m", "--overlap", "maybe"], 2, "overlap: 'maybe' is not one of"),
        (["--every", "5m", "--missed", "some"], 2, "missed.policy: 'some'"),
        (["--every", "5m", "--within", "x"], 2, "missed.within"),
        (["--every", "5m", "--jitter", "x"], 2, "jitter: 'x'"),
        (["--every", "5m", "--start-at", "x"], 2, "start_at: 'x'"),
        (["--every", "5m", "--end-at", "2030-01-01"], 2, "end_at: '2030-01-01' has no time zone"),
        (["--every", "5m", "--max-runs", "0"], 2, "max_runs: 0"),
        (["--every", "5m", "--payload", "["], 2, "payload: is not JSON"),
    ],
)
def test_invalid_schedules_are_refused(
    duetime: Duetime, options: list[str], status: int, message: str
) -> None:
    done = duetime("schedule", "add", "s", "t", *options)
    assert (done.status, message in done.err) == (status, True), done.err
    assert done.err.count("\n") == 1


def test_schedule_add_twice_needs_replace(duetime: Duetime) -> None:
    add(duetime)
    add(duetime)
    other = ("schedule", "add", "nightly", "report", "--every", "5m")
    refused = duetime(*other)
    assert (refused.status, "[schedule_exists]" in refused.err) == (1, True)
    assert duetime(*other, "--replace", "--json").json["version"] == 2


OPTIONS = (
    "--payload", '{"a": 1}', "--overlap", "skip", "--missed", "all", "--within", "6h", "--jitter", "1s..5s",
    "--start-at", "2030-01-01T00:00:00Z", "--end-at", "2031-01-01T00:00:00Z", "--max-runs", "9",
    "--queue", "slow", "--priority", "2", "--timeout", "5m", "--max-attempts", "3",
    "--delivery", "at_most_once", "--expires", "1h", "--owner", "anna", "--label", "team=blue",
)  # fmt: skip


def test_an_edit_removes_every_optional_value(duetime: Duetime) -> None:
    add(duetime, "plain", "--cron", "0 3 * * *")
    add(duetime, "nightly", "--cron", "0 3 * * *", *OPTIONS)
    fields = ("payload", "queue", "priority", "timeout", "retry", "delivery", "expires", "owner", "labels",
        "overlap", "missed", "jitter", "start-at", "end_at", "max-runs")  # fmt: skip
    flags = [flag for field in fields for flag in ("--unset", field)]
    done = duetime("schedule", "edit", "nightly", *flags, "--json")
    assert done.status == 0, done.err
    plain = duetime("schedule", "show", "plain", "--json").json
    names = [name for name in FIELDS if name not in ("id", "name", "version", "created_at", "updated_at")]
    assert [done.json[name] for name in names] == [plain[name] for name in names]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--unset", "when"], "unset: 'when' cannot be removed: use payload, queue,"),
        (["--unset", "owner", "--owner", "anna"], "owner: has a value and is removed"),
        (["--message-key", "a"], "give it again with --destination, next to --message-key"),
        (["--report"], "give it again with --target URL or --destination, next to --report"),
    ],
)
def test_refused_edits_name_the_flag(duetime: Duetime, flags: list[str], reason: str) -> None:
    add(duetime)
    refused = duetime("schedule", "edit", "nightly", *flags)
    assert (refused.status, reason in refused.err) == (2, True), refused.err


def test_schedule_list_shows_names_states_and_descriptions(duetime: Duetime) -> None:
    add(duetime, "b[red]old", "--every", "5m")
    add(duetime, "a")
    duetime("schedule", "pause", "a", "--note", "month end")
    shown = duetime("schedule", "list").out.splitlines()
    assert [line.split()[0] for line in shown] == ["NAME", "a", "b[red]old"]
    assert "paused" in shown[1]
    assert "every 5 minutes" in shown[2]
    listed = duetime("schedule", "list", "--json").json
    assert [(one["name"], one["pause_note"]) for one in listed] == [("a", "month end"), ("b[red]old", None)]
    assert [list(one) for one in listed] == [FIELDS] * 2
    assert [one["name"] for one in duetime("schedule", "list", "--after", "a", "--json").json] == [
        "b[red]old"
    ]


def test_schedule_pause_and_resume(duetime: Duetime) -> None:
    add(duetime)
    assert duetime("schedule", "pause", "nightly").out == "nightly is paused\n"
    assert duetime("schedule", "show", "nightly", "--json").json["next_fire_time"] is None
    assert "nightly is active; next fire: " in duetime("schedule", "resume", "nightly").out
    assert duetime("schedule", "show", "nightly", "--json").json["next_fire_time"] is not None


def test_schedule_trigger_adds_a_job(duetime: Duetime) -> None:
    add(duetime)
    job_id = duetime("schedule", "trigger", "nightly").out.strip()
    assert duetime("job", "show", job_id, "--json").json["schedule"] == "nightly"
    assert [job["id"] for job in duetime("job", "list", "--schedule", "nightly", "--json").json] == [job_id]


def test_schedule_remove_asks_first(duetime: Duetime) -> None:
    add(duetime)
    assert duetime("schedule", "remove", "nightly", stdin="n\n").status == 1
    assert duetime("schedule", "remove", "nightly", stdin="").status == 1
    assert duetime("schedule", "show", "nightly").status == 0
    assert duetime("schedule", "remove", "nightly", "--yes").status == 0
    assert duetime("schedule", "show", "nightly").status == 1


@pytest.mark.parametrize(
    "verb", [["show"], ["pause"], ["resume"], ["trigger"], ["remove", "--yes"], ["preview"]]
)
def test_unknown_schedules_are_not_found(duetime: Duetime, verb: list[str]) -> None:
    duetime("migrate")
    done = duetime("schedule", *verb, "missing")
    assert (done.status, "[schedule_not_found]" in done.err) == (1, True)


def test_preview_of_an_expression_needs_no_store(duetime: Duetime, folder: Path) -> None:
    """02:30 does not exist on 31 March 2030 in Berlin: the fire is right after the gap."""
    expression = (
        "--cron",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "--after",
        "2030-03-30T12:00:00Z",
        "--count",
        "2",
    )
    found = duetime("schedule", "preview", *expression, "--json").json
    assert [(fire["at"], fire["local"]) for fire in found["fires"]] == [
        ("2030-03-31T01:00:00Z", "2030-03-31T03:00:00+02:00"),
        ("2030-04-01T00:30:00Z", "2030-04-01T02:30:00+02:00"),
    ]
    assert "02:30 does not exist" in found["fires"][0]["note"]
    assert "2030-03-31 03:00:00+02:00" in duetime("schedule", "preview", *expression).out
    assert list(folder.iterdir()) == []


def test_preview_of_a_stored_schedule_respects_its_bounds(duetime: Duetime) -> None:
    add(
        duetime,
        "s",
        "--every",
        "1h",
        "--start-at",
        "2090-01-01T00:00:00Z",
        "--end-at",
        "2090-01-01T02:30:00Z",
    )
    fires = duetime("schedule", "preview", "s", "--count", "9", "--json").json["fires"]
    assert [fire["at"] for fire in fires] == [
        "2090-01-01T00:00:00Z",
        "2090-01-01T01:00:00Z",
        "2090-01-01T02:00:00Z",
    ]
    add(duetime, "few", "--every", "1h", "--max-runs", "2")
    assert len(duetime("schedule", "preview", "few", "--json").json["fires"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["name", "--cron", "* * * * *"],
        ["--cron", "nonsense"],
        ["--every", "1s", "--count", "0"],
        ["--every", "1s", "--after", "x"],
    ],
)
def test_invalid_previews_are_usage_errors(duetime: Duetime, options: list[str]) -> None:
    assert duetime("schedule", "preview", *options).status == 2
