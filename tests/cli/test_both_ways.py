"""The same command lines on a store and over HTTP: the same output, the same exit status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.conftest import Duetime, Ran
from tests.cli.fleet import make_past
from tests.cli.served import served

TRACE = re.compile(r"\b[0-9a-f]{32}\b")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
INSTANT = re.compile(r"(20[23]\d-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC)")
LAPSE = re.compile(r'_ms": [\d.]+|< 1 ms|\b[\d.]+ m?s\b')
RELATIVE = re.compile(r"\b(in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago|now)\b")
MISSING = "01935c2e-7b3a-7000-8000-000000000000"


@dataclass(slots=True)
class Side:
    """One of the two backends, and the ids on it by name."""

    run: Duetime
    before: list[str]
    known: dict[str, str] = field(default_factory=dict)

    def do(self, line: str) -> Ran:
        words = [self.known[word[1:-1]] if re.fullmatch(r"{\w+}", word) else word for word in split(line)]
        return self.run(*self.before, *words, stdin="y\n")


def split(line: str) -> list[str]:
    """At spaces, except within quotes."""
    return [quoted or plain for quoted, plain in re.findall(r"'([^']*)'|(\S+)", line)]


def test_doctor_simulate_and_key_work_over_http(sides: tuple[Side, Side]) -> None:
    for side in sides:
        side.do("schedule add hourly report --cron '0 * * * *' --max-runs 3")
        side.do("schedule add resting report --every 1m")
        side.do("schedule pause resting")
        assert side.do("simulate --from 2099-01-01T00:30:00Z --json").json["fires"] == 3
        checks = {one["name"]: one for one in side.do("doctor --json").json}
        assert (checks["store"]["level"], checks["clock"]["level"]) == ("ok", "ok")
        assert checks["nodes"]["text"] == "1 schedule and no planner is alive"
        assert checks["dead letters"]["text"] == "3"
        made = side.do("key create ops --scopes read --tenant acme --expires-in 1d --json").json
        (listed,) = side.do("key list --tenant acme --json").json
        assert {**listed, "key": made["key"]} == made
        assert f"{made['prefix']} ops " in re.sub(" +", " ", side.do("key list").out)
        revoked = side.do(f"key revoke {made['key']}")
        assert revoked.out == f"{made['prefix']} (ops of acme) is revoked\n"
        assert " revoked " in side.do("key list").out
        gone = side.do("key revoke 0000000000")
        assert (gone.status, "[key_not_found]" in gone.err) == (1, True), gone.err


def test_jobs_are_found_by_a_part_of_their_id(sides: tuple[Side, Side]) -> None:
    """Its first digits, or the last ones as the UI shows them."""
    for side in sides:
        job_id = side.do("job submit send --at 2099-01-01T09:00:00Z").out.split()[0]
        other = side.do("job submit send --at 2099-01-01T09:00:00Z").out.split()[0]
        for part in (job_id[:23], f"…{job_id[-8:]}", f"...{job_id[-8:]}", job_id[-8:].upper()):
            assert side.do(f"job show {part} --json").json["id"] == job_id, part
            assert side.do(f"why {part}").status == 0, part
        assert (
            f"{job_id} is due 2098" in side.do(f"job reschedule …{job_id[-8:]} --at 2098-01-01T09:00:00Z").out
        )
        shared = side.do(f"job show {job_id[:12]}")
        assert (shared.status, "is part of several ids" in shared.err) == (2, True), shared.err
        several = side.do(f"why {job_id[:12]}")
        assert (several.status, "is part of several ids" in several.err) == (2, True), several.err
        assert side.do(f"job cancel …{other[-8:]} {job_id[:23]}").out.split() == [
            other, "is", "cancelled", job_id, "is", "cancelled"
        ]  # fmt: skip
        dead = side.known["dead0"]
        assert side.do(f"dead discard …{dead[-8:]}").out == f"{dead} discarded\n"
        for wrong in ("…1234", "xyz", "123", "0193ffff", "ffff", "ffffffff"):
            missing = side.do(f"job show {wrong}")
            assert (missing.status, "[job_not_found]" in missing.err) == (1, True), missing.err


def test_add_names_the_flag_that_changes_an_existing_schedule(sides: tuple[Side, Side]) -> None:
    for side in sides:
        side.do("schedule add nightly report --every 90d")
        refused = side.do("schedule add nightly report --every 30d")
        assert (refused.status, refused.err) == (
            1,
            "error: another schedule 'nightly' already exists: choose another name, or change that one with "
            "--replace or `duetime schedule edit` [schedule_exists]\n",
        )
        assert side.do("schedule add nightly report --every 30d --replace").status == 0


def alike(text: str) -> str:
    """Without necessary differences: ids become numbers in order of appearance, and instants become <at>."""
    seen: dict[str, str] = {}
    text = UUID.sub(lambda found: seen.setdefault(found[0], f"<id {len(seen)}>"), text)
    text = TRACE.sub("<trace>", text)
    text = LAPSE.sub("<lapse>", RELATIVE.sub("<far>", INSTANT.sub("<at>", text)))
    return re.sub(" +", " ", text)  # column widths differ


@pytest.fixture
def sides(duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    monkeypatch.setattr(
        "duetime.cli.store_backend.user_name", lambda: None
    )  # a service in local mode does not know the user
    stores = [f"sqlite:///{folder / name}.db" for name in ("local", "remote")]
    pasts = [make_past(store) for store in stores]
    with served(stores[1]) as url:
        pair = Side(duetime, ["--store", stores[0]]), Side(duetime, ["--server", url])
        for side, past in zip(pair, pasts, strict=True):
            side.known |= {
                "good": past.succeeded,
                **{f"dead{number}": job_id for number, job_id in enumerate(past.dead)},
            }
        yield pair


# A backslash continues a line. A line that begins with "name = " keeps the first word of its output under
# this name. Times are far from now and intervals are long, so that the outputs are equal although one side runs
# after the other.
SCRIPTS = {
    "jobs": """
        first = job submit send --payload {"n":1} --at 2099-01-01T09:00:00+01:00 --priority 8 \\
            --queue mail --owner anna --label a=b
        job show {first} --json
        job show {first}
        why {first}
        why {first} --json
        job submit send --at 2099-01-01T09:00:00Z --unique-key k --json
        job submit send --at 2098-01-01T09:00:00Z --unique-key k
        job submit send --at 2098-01-01T09:00:00Z --unique-key k --on-conflict reschedule
        job submit send --at 2098-01-01T09:00:00Z --unique-key k --on-conflict replace
        call = job submit https://agent.example/run --method PUT --at 2099-03-01T09:00:00Z
        job show {call} --json
        job list
        job list --json
        job list --queue mail --owner anna --label a=b --target send --json
        job list --target @http
        job list --state dead
        job list --limit 2
        job reschedule {first} --at 2099-02-01T00:00:00Z --priority 9
        job reschedule {first}
        job reschedule {good} --delay 1h
        job run {call}
        job cancel {first} --reason 'wrong month'
        job show {first} --json
        job cancel {first}
        job cancel {good} {call}
        job retry {good}
        job show {good}
    """,
    "refused": f"""
        job show {MISSING}
        job show nonsense
        job cancel {MISSING}
        job run {MISSING}
        why {MISSING}
        why missing
        job list --state odd
        job submit send --priority 11
        job submit send --delay soon
        job submit send --queue ''
        job submit send --payload [1]
        job submit send --on-conflict replace
        job submit @http
        job submit send --method GET
        job submit ftp://agent.example/
        job submit send --payload {{
        job retry {MISSING}
        schedule show missing
        schedule pause missing
        schedule trigger missing
        schedule remove missing
        schedule preview missing
        schedule versions missing
        schedule restore missing 1
        schedule plan missing --every 90d
        schedule edit missing --every 90d
        schedule add s t --cron '0 0 30 2 *'
        schedule add s t --cron '61 * * * *'
        schedule add s t --every 90d --overlap maybe
        schedule add s t --every 90d --queue @x
        schedule add s t --every 90d --jitter x
        schedule add @s t --every 90d
        schedule backfill missing --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --yes
        queue limit mail --max-running 0
        queue limit mail --rate often
        queue pause @mail
        dead retry {MISSING}
        job cancel --all x
        job cancel x --queue mail
        stats --step 1s
        events --types odd --count 1
    """,
    "schedules": """
        schedule add nightly report --cron '30 2 * * *' --tz Europe/Berlin --payload {"a":1} \\
            --overlap skip --missed all --within 6h
        schedule add nightly report --cron '30 2 * * *' --tz Europe/Berlin --payload {"a":1} \\
            --overlap skip --missed all --within 6h --json
        schedule add nightly report --every 90d
        schedule add nightly report --every 90d --replace --owner anna --label team=blue --json
        schedule add ping https://agent.example/ping --method GET --cron '0 9 1 1 *' --jitter 5s \\
            --max-runs 3 --queue slow --priority 2
        schedule add a/b report --cron '0 9 1 1 *' --start-at 2090-01-01T00:00:00Z \\
            --end-at 2095-01-01T00:00:00Z
        schedule list
        schedule list --json
        schedule list --owner anna --active --text NIGHT --label team=blue --target report \\
            --queue default --json
        schedule list --paused
        schedule list --after a/b --limit 1 --json
        schedule show a/b --json
        schedule preview a/b --count 2
        schedule preview a/b --count 2 --json
        schedule plan ping --cron '0 10 1 1 *' --priority 9 --horizon 800d
        schedule plan ping --cron '0 10 1 1 *' --priority 9 --horizon 800d --json
        schedule plan ping --priority 2
        schedule edit ping --priority 9 --json
        schedule edit ping --priority 9 --json
        schedule edit ping
        schedule edit ping --unset priority --unset end-at --json
        schedule pause nightly --note 'month end'
        schedule show nightly
        why nightly
        why nightly --json
        schedule resume nightly
        schedule versions nightly
        schedule versions nightly --json
        schedule versions ping --limit 1
        schedule restore nightly 1 --json
        schedule restore nightly 99
        job = schedule trigger ping
        job show {job} --json
        schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-01-04T00:00:00Z
        schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-01-04T00:00:00Z --yes --json
        schedule backfill nightly --from 2026-02-01T00:00:00Z --to 2026-02-09T00:00:00Z --yes --limit 2 \\
            --rate 1/1h
        schedule remove a/b ping
        schedule remove nightly --yes
        schedule list
        schedule versions nightly --limit 1
    """,
    "many": f"""
        schedule add one report --every 90d --owner anna
        schedule add two report --every 90d --owner anna
        schedule add three report --every 90d
        schedule pause --all --owner anna --dry-run
        schedule pause --all --owner anna --dry-run --json
        schedule pause --all --owner anna --note moving
        schedule list
        schedule resume --all --text t --yes --json
        schedule trigger --all --owner anna --yes
        schedule remove --all --owner missing --yes
        schedule remove --all --owner anna --yes
        job submit send --at 2099-01-01T09:00:00Z --queue mail
        job submit send --at 2099-01-01T09:00:00Z --queue mail
        job cancel --all --queue mail --dry-run
        job run --all --queue mail --yes
        job cancel --all --queue mail --yes --json
        dead groups
        dead groups --json
        dead list
        dead list --json
        dead list --target boom --limit 1
        dead discard {{dead0}}
        dead discard {{dead0}} {{good}} {MISSING}
        dead retry {{dead1}}
        dead retry --all --target boom --dry-run
        dead retry --all --target boom --yes
        dead list
        job retry --all --yes
    """,
    "fleet": """
        task list
        task list --json
        job submit send --queue mail --at 2001-01-01T00:00:00Z
        queue list
        queue list --json
        queue pause mail --note 'server moves'
        queue pause mail --json
        queue limit mail --max-running 5 --rate 100/1m
        queue limit mail --none --json
        queue resume mail
        node list
        node list --all --json
        stats --since 24h --step 24h --json
        stats --since 24h --step 24h
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_commands_print_the_same_on_a_store_and_over_http(name: str, sides: tuple[Side, Side]) -> None:
    for written in SCRIPTS[name].replace("\\\n", "").strip().splitlines():
        keep, equals, line = written.strip().rpartition(" = ")
        here, there = (side.do(line) for side in sides)
        assert alike(here.out) == alike(there.out), f"{line}\n{here}\n{there}"
        assert alike(here.err) == alike(there.err), f"{line}\n{here}\n{there}"
        assert here.status == there.status, f"{line}\n{here}\n{there}"
        assert "[internal]" not in here.err, f"{line}\n{here}"
        assert name != "refused" or (here.status in (1, 2) and here.err.count("\n") == 1), f"{line}\n{here}"
        if equals:
            for side, ran in zip(sides, (here, there), strict=True):
                assert ran.status == 0, f"{line}\n{ran}"
                side.known[keep] = ran.out.split()[0]
