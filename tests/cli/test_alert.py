"""`duetime alert`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Duetime


def test_channel_is_set_shown_without_its_secret_and_removed(duetime: Duetime, tmp_path: Path) -> None:
    secret = tmp_path / "slack.txt"
    secret.write_text("https://hooks.slack.example/services/T0/s3cret\n")
    made = duetime("alert", "channel", "chat", "--type", "slack", f"url=@{secret}")
    assert (made.status, made.out) == (0, "channel chat (slack): duetime alert test chat\n"), made.err
    quiet = duetime("alert", "channel", "chat", "--quiet", "22:00-07:00", "--tz", "Europe/Berlin", "--json")
    assert quiet.json["secrets"] == ["url"], quiet.err
    shown = duetime("alert", "channels")
    assert "22:00-07:00 Europe/Berlin" in shown.out
    assert "s3cret" not in shown.out + quiet.out
    assert duetime("alert", "remove-channel", "chat", "--yes").out == "channel chat is removed\n"
    again = duetime("alert", "remove-channel", "chat", "--yes")
    assert (again.status, "[channel_not_found]" in again.err) == (1, True)


def test_optional_field_is_removed_and_a_needed_one_is_not(duetime: Duetime) -> None:
    hook, secret = "url=https://hooks.example.org/duetime", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    duetime("alert", "channel", "hook", "--type", "webhook", hook, f"signing_secret={secret}")
    assert duetime("alert", "channel", "hook", "--off", "--json").json["secrets"] == ["signing_secret"]
    without = duetime("alert", "channel", "hook", "--unset", "signing_secret", "--json")
    assert (without.json["secrets"], without.json["settings"]) == ([], {"url": hook[4:]}), without.err
    assert without.json["enabled"] is False
    assert duetime("alert", "channel", "hook", "--on", "--json").json["enabled"] is True
    mail = ("host=mail.example.org", "sender=a@example.org", "to=b@example.org", "username=ada", "password=x")
    duetime("alert", "channel", "team", "--type", "email", *mail)
    for words, expected in (
        (("hook", "--unset", "url"), "url: cannot be removed: a channel of type webhook needs it"),
        (("hook", "--unset", "colour"), "no field 'colour': known are url, signing_secret"),
        (("hook", "--unset", "signing_secret", f"signing_secret={secret}"), "has a value and is removed"),
        (("team", "--unset", "password"), "password: belongs to the username: remove both"),
    ):
        refused = duetime("alert", "channel", *words)
        assert refused.status in (1, 2)
        assert expected in refused.err
    left = duetime("alert", "channel", "team", "--unset", "username", "--unset", "password", "--json").json
    assert ("username" in left["settings"], left["secrets"]) == (False, [])


def test_wrong_fields_name_the_field_and_the_remedy(duetime: Duetime) -> None:
    duetime("migrate")
    for words, expected in (
        (("channel", "x"), "type: a new channel needs --type: webhook, slack"),
        (("channel", "x"), "write: duetime alert channel x --type slack url=@slack-webhook.txt"),
        (
            ("channel", "set", "ops"),
            "'ops' is not FIELD=VALUE; write: duetime alert channel ops --type slack url=",
        ),
        (
            ("channel", "ops", "url"),
            "'url' is not FIELD=VALUE; write: duetime alert channel ops --type slack url=",
        ),
        (("channel", "x", "--type", "carrier-pigeon"), "type: 'carrier-pigeon' is not one of webhook, slack"),
        (("channel", "x", "--type", "slack"), "url is missing: a new channel of type slack needs it"),
        (("channel", "x", "--type", "webhook", "url=ftp://x"), "url: must begin with https:// or http://"),
        (("channel", "x", "--type", "webhook", "colour=red"), "'colour=red' is not FIELD=VALUE"),
        (("rule", "x"), "condition: a new rule needs --condition: silent, late"),
        (
            ("rule", "x", "--condition", "silent", "--count", "3"),
            "count: does not apply to the condition silent",
        ),
        (("rule", "silent", "--after", "soon"), "after: 'soon' is not a duration"),
        (("snooze", "nothing"), "no alert 'nothing' is open"),
        (("test", "missing"), "there is no channel 'missing'"),
    ):
        ran = duetime("alert", *words)
        assert ran.status in (1, 2)
        assert expected in ran.err, ran.err


def test_rules_are_replaced_and_come_back(duetime: Duetime) -> None:
    duetime("migrate")
    rules = {one["name"]: one for one in duetime("alert", "rules", "--json").json}
    assert (rules["silent"]["after"], rules["silent"]["version"]) == ("10m", 0)
    assert "late" not in rules
    changed = duetime("alert", "rule", "silent", "--after", "30m", "--json")
    assert (changed.json["after"], changed.json["version"] > 0) == ("30m", True), changed.err
    named = ("--condition", "late", "--schedule", "report-*", "--after", "5m", "--channel", "ops")
    duetime("alert", "rule", "reports", *named)
    listed = duetime("alert", "rules").out
    assert listed.splitlines()[1].split()[:3] == ["reports", "late", "report-*"]  # the most specific first
    duetime("alert", "remove-rule", "silent")
    rules = {one["name"]: one for one in duetime("alert", "rules", "--json").json}
    assert rules["silent"]["after"] == "10m"
    refused = duetime("alert", "remove-rule", "silent")
    assert "built in: switch it off instead" in refused.err


def test_rule_says_that_it_is_off_and_which_channels_are_missing(duetime: Duetime) -> None:
    hook = ("--type", "webhook", "url=https://hooks.example.org/duetime")
    duetime("alert", "channel", "ops", *hook)
    made = duetime("alert", "rule", "silent", "--off", "--channel", "ops", "--channel", "opz")
    assert made.out.splitlines()[1].split()[-1] == "off"
    assert made.err == "there is no channel 'opz': until there is, the rule tells it nothing\n"


def test_maintenance_window_begins_and_ends(duetime: Duetime) -> None:
    duetime("migrate")
    made = duetime("alert", "mute", "--for", "2h", "--subject", "report-*", "--note", "disk", "--json").json
    assert (made["subject"], made["note"]) == ("report-*", "disk")
    assert "report-*" in duetime("alert", "mutes").out
    assert duetime("alert", "unmute", made["id"]).out == f"{made['id']} is over\n"
    assert duetime("alert", "mutes").out == "nothing is muted\n"
    assert duetime("alert", "list").out == "no alerts\n"
