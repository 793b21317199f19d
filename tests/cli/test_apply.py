"""`duetime apply` and `duetime export`: files of schedules, on a store and over HTTP."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Duetime, Ran
from tests.cli.served import served

SECRET_KEYS = ("k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",)
FILE = """\
managed_by: shop
schedules:
  - name: nightly
    when: {cron: 30 2 * * MON-FRI, tz: Europe/Berlin}
    target: report.build
    payload: {days: 7}
    overlap: skip
  - name: ping
    when: {every: 6h}
    target: https://agent.example/ping
"""


class Side:
    """A backend, and its schedules as files have them."""

    def __init__(self, run: Duetime, *before: str) -> None:
        self._run, self._before = run, before

    def __call__(self, *words: str, stdin: str | None = None) -> Ran:
        return self._run(*self._before, *words, stdin=stdin)

    def apply(self, text: str, *flags: str) -> Ran:
        return self("apply", "-", *flags, stdin=text)

    def actions(self, text: str, *flags: str) -> dict[str, str]:
        planned = self.apply(text, "--plan", "--json", *flags)
        assert planned.status in (0, 3), planned.err
        return {one["name"]: one["action"] for one in planned.json}

    def schedule(self, name: str) -> Any:
        return self("schedule", "show", name, "--json").json


@pytest.fixture(params=["store", "server"])
def side(
    request: pytest.FixtureRequest, duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Side]:
    store = f"sqlite:///{folder / 'duetime.db'}"
    duetime("--store", store, "migrate")
    if request.param == "store":
        monkeypatch.setenv("DUETIME_SECRET_KEYS", SECRET_KEYS[0])
        yield Side(duetime, "--store", store)
    else:
        with served(store, secret_keys=SECRET_KEYS, allow_commands=True) as url:
            yield Side(duetime, "--server", url)


def test_applying_adds_and_applying_again_changes_nothing(side: Side) -> None:
    planned = side.apply(FILE, "--plan")
    assert planned.status == 3
    assert "+ nightly: at 02:30, Monday to Friday, Europe/Berlin time\n    fire added: " in planned.out
    assert planned.out.endswith("2 to add, 0 to change, 0 to remove; 0 unchanged\n")
    assert side("schedule", "list", "--json").json == []  # a plan changes nothing
    assert side.apply(FILE).out.endswith("2 added, 0 changed, 0 removed, 0 unchanged\n")
    nightly = side.schedule("nightly")
    assert (nightly["payload"], nightly["overlap"]) == ({"days": 7}, "skip")
    assert nightly["labels"] == {"managed-by": "shop"}
    again = side.apply(FILE, "--plan")
    assert (again.status, again.out) == (0, "0 to add, 0 to change, 0 to remove; 2 unchanged\n")
    assert side.apply(FILE).status == 0
    assert side.schedule("nightly")["version"] == 1


def test_plan_names_changed_fields_and_fires_and_comes_true(side: Side) -> None:
    side.apply(FILE)
    edited = FILE.replace("30 2", "0 3").replace("    overlap: skip\n", "    priority: 9\n")
    planned = side.apply(edited, "--plan")
    assert planned.status == 3
    lines = planned.out.splitlines()
    assert lines[0] == "~ nightly"
    assert '    when: {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"} -> ' in planned.out
    assert {"    priority: 5 -> 9", "    overlap: skip -> allow"} <= set(lines)
    assert sum(line.startswith("    fire moved: ") for line in lines) == 3
    # One less, and one that is added, in the half hour between the old time and the new one.
    assert {"    fires moved: 2 more", "    fires moved: 1 more"} & set(lines)
    assert side.actions(edited) == {"nightly": "change", "ping": "keep"}
    side.apply(edited)
    assert side.schedule("nightly")["when"]["cron"] == "0 3 * * MON-FRI"
    assert side.schedule("nightly")["version"] == 2
    assert side.apply(edited, "--plan").status == 0


def test_prune_removes_only_schedules_of_the_same_name(side: Side) -> None:
    side.apply(FILE)
    side.apply(FILE.replace("shop", "other").replace("nightly", "theirs").replace("ping", "theirs2"))
    side("schedule", "add", "by-hand", "report.build", "--every", "6h")
    rest = FILE[: FILE.index("  - name: ping")]
    assert side.actions(rest) == {"nightly": "keep"}
    assert side.actions(rest, "--prune") == {"nightly": "keep", "ping": "remove"}
    shown = side.apply(rest, "--plan", "--prune", "--count", "1")
    assert "- ping\n    fire withdrawn: " in shown.out
    assert side.apply(rest, "--prune").status == 1  # it asks, and stdin has no answer
    assert side.apply(rest, "--prune", "--yes").out.endswith("0 added, 0 changed, 1 removed, 1 unchanged\n")
    names = [one["name"] for one in side("schedule", "list", "--json").json]
    assert names == ["by-hand", "nightly", "theirs", "theirs2"]
    unnamed = side.apply(rest.replace("managed_by: shop\n", ""), "--prune")
    assert (unnamed.status, "give --managed-by" in unnamed.err) == (1, True)


def test_schedule_of_another_name_is_refused_and_adopted(side: Side) -> None:
    side.apply(FILE)
    refused = side.apply(FILE, "--managed-by", "other")
    assert refused.status == 1
    assert "error: stdin:3: nightly: is managed by 'shop', not by 'other'" in refused.err
    assert side.apply(FILE, "--managed-by", "other", "--adopt").status == 0
    assert side.schedule("nightly")["labels"] == {"managed-by": "other"}


def test_every_wrong_entry_is_named_and_nothing_is_applied(side: Side) -> None:
    wrong = FILE + (
        "  - name: a\n    when: {cron: 0 9 * * *, tz: Europe/Berln}\n    target: t\n"
        "  - name: b\n    when: {every: 1h}\n    target: t\n    overlaps: skip\n"
        "  - name: c\n    when: {cron: 0 0 30 2 *}\n    target: t\n"
        "  - name: nightly\n    when: {every: 1h}\n    target: t\n"
        "  - name: d\n    when: {every: 1h}\n    target: t\n    paused: yes\n    timeout: 5\n"
    )
    refused = side.apply(wrong)
    assert refused.status == 1
    assert refused.err.splitlines() == [
        "error: stdin:12: a: when.tz: there is no time zone 'Europe/Berln': did you mean 'Europe/Berlin'? "
        "[document_invalid]",
        "error: stdin:17: b: overlaps: no such option: did you mean 'overlap'? [document_invalid]",
        "error: stdin:19: c: when.cron: '0 0 30 2 *' never fires: no month it names has such a day; check day of month "
        "and month [document_invalid]",
        "error: stdin:27: d: paused: 'yes' must be true or false [document_invalid]",
        "error: stdin:21: nightly: name: is also that of the entry at stdin:3: rename one [document_invalid]",
        "5 problems: nothing was applied",
    ]
    late = "  - name: c\n    target: t\n    when:\n      at: 2020-01-01T00:00:00Z\n"
    never = side.apply(FILE + late, "--plan")  # only the backend knows the time
    assert (never.status, never.err[:24]) == (1, "error: stdin:13: c: when")
    assert side("schedule", "list", "--json").json == []


def test_secrets_are_references_and_never_exported(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "schedules:\n  - name: call\n    when: {every: 6h}\n    target:\n"
        "      url: https://agent.example/run\n      secret_headers:\n"
        "        Authorization: {env: SECRET_SHOP}\n"
    )
    unset = side.apply(text)
    assert unset.status == 1
    assert (
        "stdin:7: call: target.secret_headers.Authorization: the environment variable SECRET_SHOP"
        in unset.err
    )
    written = side.apply(text.replace("{env: SECRET_SHOP}", "Bearer 123"))
    assert (written.status, "write {env: NAME} or {file: PATH}" in written.err) == (1, True), written.err
    monkeypatch.setenv("SECRET_SHOP", "Bearer sesame")
    assert side.apply(text).status == 0
    monkeypatch.delenv("SECRET_SHOP")
    assert side.apply(text, "--plan").status == 0  # the stored secret stays, and its value is not needed
    monkeypatch.setenv("SECRET_SHOP", "Bearer changed")
    assert side.apply(text, "--plan", "--send-secrets").status == 3
    assert side.actions(text.replace("/run", "/go")) == {"call": "change"}
    exported = side("export").out
    assert "sesame" not in exported
    assert "  # Secrets are not exported. Set SECRET_CALL_AUTHORIZATION before you apply this." in exported
    assert "Authorization: {env: SECRET_CALL_AUTHORIZATION}" in exported
    assert side.apply(exported, "--plan").status == 0


CALL = (
    "schedules:\n  - name: call\n    when: {every: 6h}\n    target:\n      url: https://agent.example/run\n"
    "      secret_headers: {Authorization: REFERENCE}\n"
)


def test_file_reads_only_secrets_that_are_meant_for_it(
    side: Side, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The author of a file says which server gets the secret."""
    (folder / "files").mkdir()
    (folder / "outside").write_text("Bearer outside")
    (folder / "files" / "inside").write_text("Bearer inside")
    (folder / "files" / "link").symlink_to(folder / "outside")
    for name in ("SECRET_SHOP", "SHOP_TOKEN"):
        monkeypatch.setenv(name, "Bearer sesame")
    monkeypatch.setenv("DUETIME_SECRET_KEYS", SECRET_KEYS[0])

    def apply(reference: str, *flags: str) -> Ran:
        (folder / "files" / "s.yaml").write_text(CALL.replace("REFERENCE", reference))
        return side("apply", str(folder / "files"), "--plan", *flags)

    for reference, remedy in {
        "{env: SHOP_TOKEN}": "begin with SECRET_, or allow it with --secrets-from SHOP_TOKEN",
        "{env: DUETIME_SECRET_KEYS}": "belongs to Duetime itself",
        "{file: ../outside}": f"allow its folder with --secrets-from {folder}",
        "{file: /etc/hostname}": "is not below the folder of the document",
        "{file: link}": "is not below the folder of the document",
    }.items():
        refused = apply(reference)
        assert refused.status == 1
        assert "s.yaml:6: call: target.secret_headers.Authorization: " in refused.err
        assert remedy in refused.err
        assert "Bearer" not in refused.err
    assert apply("{env: DUETIME_SECRET_KEYS}", "--secrets-from", "DUETIME_SECRET_KEYS").status == 1

    assert (
        "sends secret_headers.Authorization from the variable SECRET_SHOP" in apply("{env: SECRET_SHOP}").out
    )
    assert apply("{env: SHOP_TOKEN}", "--secrets-from", "SHOP_TOKEN").status == 3
    inside = apply("{file: inside}")
    assert f"from the file {folder / 'files' / 'inside'}\n" in inside.out
    assert "Bearer" not in inside.out
    assert apply("{file: ../outside}", "--secrets-from", f"{folder}/").status == 3


def test_secret_that_leaves_the_file_is_removed(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_SHOP", "whsec_" + "c2VjcmV0" * 4)
    text = "schedules:\n  - name: call\n    when: {every: 6h}\n    target:\n      url: https://agent.example/run\n"
    references = "      signing_secret: {env: SECRET_SHOP}\n      secret_headers: {Authorization: {env: SECRET_SHOP}}\n"
    assert side.apply(text + references).status == 0
    assert "SECRET_CALL_AUTHORIZATION" in side("export").out
    assert side.actions(text) == {"call": "change"}
    assert side.apply(text).status == 0
    assert "SECRET" not in side("export").out.upper()
    assert side.apply(text, "--plan").status == 0


def test_pause_of_an_operator_stays_unless_the_file_says_otherwise(side: Side) -> None:
    side.apply(FILE)
    side("schedule", "pause", "ping")
    assert side.apply(FILE, "--plan").status == 0
    resumed = FILE + "    paused: false\n"
    assert side.actions(resumed) == {"nightly": "keep", "ping": "change"}
    side.apply(resumed)
    assert side.schedule("ping")["paused"] is False
    paused = FILE + "    paused: true\n"
    side.apply(paused)
    assert side.schedule("ping")["paused"] is True
    assert side.apply(paused, "--plan").status == 0


def test_shadow_schedule_keeps_its_target_for_later(side: Side) -> None:
    shadow = FILE + "    shadow: true\n"
    side.apply(shadow)
    target = side.schedule("ping")["target"]
    assert (target["type"], target["target"]["url"]) == ("shadow", "https://agent.example/ping")
    assert side.apply(shadow, "--plan").status == 0
    assert side.apply(side("export").out, "--plan").status == 0
    assert side.actions(FILE) == {"nightly": "keep", "ping": "change"}


def test_folders_several_files_and_json(duetime: Duetime, folder: Path) -> None:
    duetime("migrate")
    (folder / "all" / "inner").mkdir(parents=True)
    (folder / "all" / ".hidden").mkdir()
    (folder / "all" / "one.yaml").write_text(FILE)
    (folder / "all" / ".hidden" / "no.yaml").write_text("not: read")
    entry = {"name": "third", "when": {"every": "2h"}, "target": {"type": "task", "name": "t"}}
    (folder / "all" / "inner" / "two.json").write_text(json.dumps({"schedules": [entry]}))
    (folder / "more.yml").write_text(
        "schedules: []\n---\nschedules:\n- {name: x, when: {every: 2h}, target: t}\n"
    )
    done = duetime("apply", "all", "more.yml")
    assert done.out.endswith("4 added, 0 changed, 0 removed, 0 unchanged\n"), done.err
    assert duetime("apply", "missing.yaml").err == (
        "error: missing.yaml: cannot be read: No such file or directory [document_invalid]\n"
    )
    (folder / "empty").mkdir()
    assert "has no file that ends with" in duetime("apply", "empty").err


def test_plan_without_a_store_is_an_error_and_not_a_change(duetime: Duetime, folder: Path) -> None:
    (folder / "s.yaml").write_text(FILE)
    missing = duetime("apply", "s.yaml", "--plan")
    assert (missing.status, "there is no file" in missing.err) == (2, True), missing.err
    assert not (folder / "duetime.db").exists()


def test_values_left_out_are_those_of_the_task(folder: Path, duetime: Duetime) -> None:
    (folder / "tasks.py").write_text(
        'import duetime as dt\n\napp = dt.App("sqlite:///duetime.db")\n\n\n'
        '@app.task("send", queue="mail", priority=8, delivery="at_most_once")\ndef send() -> None: ...\n'
    )
    duetime("--app", "tasks:app", "migrate")
    side = Side(duetime, "--app", "tasks:app")
    plain = "schedules:\n- {name: s, when: {every: 2h}, target: send}\n"
    own = "schedules:\n- {name: s, when: {every: 2h}, target: send, queue: fast, priority: 1}\n"
    side.apply(plain)
    found = side.schedule("s")
    assert (found["queue"], found["priority"], found["delivery"]) == ("mail", 8, "at_most_once")
    assert side.apply(plain, "--plan").status == 0
    side.apply(own)
    assert side.schedule("s")["queue"] == "fast"
    side.apply(plain)
    assert side.schedule("s")["queue"] == "mail"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("schedules:\n  - {name: [}\n", 2, "is not YAML"),
        ("schedules:\n  - name: a\n    name: b\n", 3, "'name' is there twice"),
        ("schedules:\n  - name: !!python/name:os.system x\n", 2, "the tag"),
        ("schedules: {}\n", 1, "must be a mapping with a list `schedules`"),
        ("other: 1\nschedules: []\n", 1, "other: is unknown"),
        ("managed_by: '@x'\nschedules: []\n", 1, "managed_by: '@x' is reserved"),
        (
            "schedules:\n  - {name: x, when: {every: 1h}, target: {type: odd}}\n",
            2,
            "target.type: must be one of",
        ),
        ("schedules:\n  - just text\n", 2, "schedules: an entry must be a mapping"),
    ],
)
def test_wrong_files_name_the_line(duetime: Duetime, text: str, line: int, reason: str) -> None:
    refused = Side(duetime).apply(text)
    assert refused.status == 1
    assert refused.err.startswith(f"error: stdin:{line}: "), refused.err
    assert reason in refused.err


def test_aliases_and_merge_keys_share_values(duetime: Duetime) -> None:
    duetime("migrate")
    text = (
        "schedules:\n"
        "  - &first {name: a, when: {every: 2h}, target: t, queue: slow, owner: anna}\n"
        "  - {<<: *first, name: b, queue: fast}\n"
    )
    side = Side(duetime)
    assert side.apply(text).status == 0
    found = side.schedule("b")
    assert (found["queue"], found["owner"]) == ("fast", "anna")


def test_bomb_of_aliases_is_refused(duetime: Duetime) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    refused = Side(duetime).apply("\n".join(lines))
    assert (refused.status, "too many" in refused.err) == (1, True)


def test_schema_is_printed_and_names_every_field(duetime: Duetime) -> None:
    schema = duetime("apply", "--schema").json
    assert {"name", "when", "target", "shadow", "paused", "jitter"} <= set(
        schema["$defs"]["Schedule"]["properties"]
    )


POLICIES = """
schedules:
  - name: exact
    when: {every: 1h}
    target: report
    retry: {max_attempts: 4, delays: [1s, 2m]}
  - name: patient
    when: {cron: "0 9 * * *", tz: Europe/Berlin}
    target: report
    retry: {max_attempts: 4, first_delay: 3s, backoff: linear, jitter: false, max_age: 1d, max_losses: 2}
    missed: {policy: all, within: 6h, max: 7}
"""


def test_whole_retry_policy_is_applied_and_exported(side: Side) -> None:
    assert side.apply(POLICIES).status == 0
    assert side.actions(side("export").out) == {"exact": "keep", "patient": "keep"}
    assert side("schedule", "show", "exact", "--json").json["retry"]["delays"] == ["1s", "2m"]


def test_edit_of_a_part_keeps_the_other_parts(side: Side) -> None:
    side.apply(POLICIES)
    patient = side("schedule", "show", "patient", "--json").json
    words = ("--max-attempts", "7", "--within", "3h", "--tz", "America/New_York")
    assert "America/New_York" in side("schedule", "plan", "patient", *words).out
    edited = side("schedule", "edit", "patient", *words, "--json").json
    assert edited["retry"] == {**patient["retry"], "max_attempts": 7}
    assert edited["missed"] == {"policy": "all", "within": "3h", "max": 7}
    assert edited["when"] == {"cron": "0 9 * * *", "tz": "America/New_York"}
    edited = side("schedule", "edit", "exact", "--retry-delay", "9s", "--json").json
    assert edited["retry"]["first_delay"] == "9s"
    assert "delays" not in edited["retry"], "a list would take precedence over the flag"
    refused = side("schedule", "edit", "exact", "--tz", "Europe/Berlin")
    assert (refused.status, "applies only to a schedule with --cron or --rrule" in refused.err) == (2, True)
    edited = side(
        "schedule", "edit", "exact", "--missed", "skip", "--end-at", "2040-01-01T00:00:00Z", "--json"
    )
    assert (edited.json["missed"]["policy"], edited.json["end_at"]) == ("skip", "2040-01-01T00:00:00Z")
    refused = side("schedule", "edit", "exact", "--within", "1h")
    assert (refused.status, "missed.within: has no effect with 'skip'" in refused.err) == (2, True), (
        refused.err
    )
    edited = side("schedule", "edit", "patient", "--missed", "latest", "--json")
    assert edited.json["missed"] == {"policy": "latest", "within": "3h", "max": None}


def test_settings_without_effect_are_refused(side: Side) -> None:
    exact, patient = (
        POLICIES.replace("delays:", "first_delay: 9s, delays:"),
        POLICIES.replace("all,", "skip,"),
    )
    for text, problem in (
        (exact, "retry.first_delay: has no effect with delays"),
        (patient, "missed.within: has no effect with 'skip'"),
    ):
        refused = side.apply(text)
        assert (refused.status, problem in refused.err) == (1, True), refused.err
    added = side("schedule", "add", "s", "report", "--every", "1h", "--missed", "skip", "--within", "1h")
    assert (added.status, "missed.within: has no effect" in added.err) == (2, True), added.err


OLDER_DELAYS = {"first_delay": "9s", "multiplier": 2.0, "max_delay": "1h", "delays": ["1s", "2m"]}


def test_settings_without_effect_of_an_older_version_are_read(side: Side, folder: Path) -> None:
    side.apply(POLICIES)
    older = (
        json.dumps({"policy": "skip", "within": "6h", "max": 7}),
        json.dumps({"retry": {"max_attempts": 4, **OLDER_DELAYS}}).encode(),
    )
    with closing(sqlite3.connect(folder / "duetime.db")) as file, file:
        file.execute("UPDATE schedules SET missed = ?, policies = ? WHERE name = 'exact'", older)
    assert side.schedule("exact")["missed"] == {"policy": "skip", "within": None, "max": None}
    assert side.actions(side("export").out) == {"exact": "keep", "patient": "keep"}
    words = ("schedule", "edit", "exact", "--max-attempts", "7", "--json")
    assert side(*words).json["retry"] == {"max_attempts": 7, **OLDER_DELAYS, "first_delay": "5s"}
    assert side("schedule", "edit", "exact", "--missed", "latest", "--json").json["missed"]["max"] is None


@pytest.mark.parametrize(
    ("words", "part", "remedy"),
    [
        (("--header", "X-Team: mail"), "header", "--target URL"),
        (("--method", "GET"), "method", "--target URL"),
        (("--cwd", "/tmp"), "cwd", "--command or --shell"),
    ],
)
def test_edit_of_a_part_of_the_target_asks_for_all_of_it(
    side: Side, words: tuple[str, ...], part: str, remedy: str
) -> None:
    side.apply(POLICIES)
    refused = side("schedule", "edit", "patient", *words)
    assert refused.status != 0
    message = f"{part}: an edit replaces the whole target: give it again with {remedy}, next to --{part}"
    assert message in refused.err
