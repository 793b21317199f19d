"""Command targets: programs that a node starts, without a shell, only if it allows them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select

import pytest

from duetime.errors import InvalidInput
from duetime.invokers.command import USUAL_VARIABLES
from duetime.model.command import MAX_LENGTH, MAX_WORDS, CommandTarget
from tests.cli.conftest import Duetime
from tests.cli.node import Node
from tests.cli.served import served

ALLOW = ("--allow-commands", "yes")


@pytest.fixture
def node(folder: Path) -> Iterator[Callable[..., Node]]:
    nodes: list[Node] = []

    def start(*options: str, **environment: str) -> Node:
        nodes.append(Node(folder, "serve", *options, **environment))
        nodes[-1].until("stop")
        return nodes[-1]

    yield start
    for one in nodes:
        one.kill()


def test_command_runs_without_a_shell_and_its_output_is_the_result(
    node: Callable[..., Node], duetime: Duetime, folder: Path
) -> None:
    node(*ALLOW, DUETIME_SECRET_KEYS="k1:" + "A" * 43 + "=")
    script = folder / "show"
    script.write_text('#!/bin/sh\necho "$0 $#: $1 in $(pwd)"; cat; echo "keys: $DUETIME_SECRET_KEYS" >&2\n')
    script.chmod(0o755)
    words = ("--command", f"{script} '$HOME; echo'", "--cwd", "/", "--payload", '{"n": 1}')
    done = duetime("job", "submit", *words, "--wait", "--json")
    assert done.status == 0, done.err
    assert done.json["result"] == {
        "status": 0,
        "stdout": f'{script} 1: $HOME; echo in /\n{{"n":1}}',
        "stderr": "keys: \n",
    }
    shown = duetime("job", "show", done.json["id"], "--json").json["target"]
    assert shown == {"type": "command", "argv": [str(script), "$HOME; echo"], "cwd": "/"}


def test_command_gets_only_the_usual_variables_and_those_listed(
    node: Callable[..., Node], duetime: Duetime
) -> None:
    """What it prints is seen by all who may read jobs."""
    secrets = {"AWS_SECRET_ACCESS_KEY": "s3cret", "PGPASSWORD": "s3cret", "DUETIME_CONCURRENCY": "3"}
    node(*ALLOW, "--command-environment", "REGION,NO_SUCH", **secrets, REGION="north", TZ="UTC", LANG="C")
    done = duetime("job", "submit", "--command", "/usr/bin/env", "--wait", "--json")
    lines = done.json["result"]["stdout"].splitlines()
    known = dict(line.split("=", 1) for line in lines)
    assert (known["REGION"], known["TZ"], known["LANG"]) == ("north", "UTC", "C")
    assert known["PATH"] == os.environ["PATH"]
    assert set(known) <= {*USUAL_VARIABLES, "REGION"}


def test_failing_command_is_a_dead_letter_with_its_output(
    node: Callable[..., Node], duetime: Duetime
) -> None:
    """As under cron: without a second attempt, unless the job asks for it."""
    node(*ALLOW)
    done = duetime("job", "submit", "--shell", "echo so far; echo no room >&2; exit 3", "--wait", "--json")
    assert done.status == 1
    (job,) = duetime("job", "list", "--state", "dead", "--json").json
    found = duetime("job", "show", job["id"], "--json").json
    assert (found["error"], found["attempt"]) == ("exit status 3: no room", 1)
    assert found["result"] == {"status": 3, "stdout": "so far\n", "stderr": "no room\n"}


def test_output_of_a_command_is_kept_up_to_a_limit(node: Callable[..., Node], duetime: Duetime) -> None:
    node(*ALLOW)
    line = "head -c 3000000 /dev/zero | tr '\\0' a; printf end"
    done = duetime("job", "submit", "--shell", line, "--wait", "--json")
    text = done.json["result"]["stdout"]
    assert (text[:6], text[-4:], len(text)) == ("[...]a", "aend", 32 * 1024 + 5)


def test_cancelling_kills_a_command_with_everything_it_started(
    node: Callable[..., Node], duetime: Duetime, folder: Path
) -> None:
    os.mkfifo(folder / "pids")
    node(*ALLOW)
    line = "trap '' TERM; sleep 1000 & echo $$ $! > pids; wait; sleep 1000"
    submitted = duetime("job", "submit", "--shell", line, "--cwd", str(folder)).out.strip()
    processes = [int(pid) for pid in (folder / "pids").read_text().split()]  # waits until it has started
    handles = [os.pidfd_open(pid) for pid in processes]
    assert duetime("job", "cancel", submitted).status == 0
    for handle in handles:
        assert select([handle], [], [], 60)[0], "the process ends"
        os.close(handle)


def test_command_ends_at_its_timeout(node: Callable[..., Node], duetime: Duetime) -> None:
    node(*ALLOW)
    done = duetime("job", "submit", "--command", "sleep 1000", "--timeout", "100ms", "--wait")
    assert (done.status, "timed out" in done.err) == (1, True), done.err


def test_node_without_the_setting_neither_runs_nor_accepts_commands(
    node: Callable[..., Node], duetime: Duetime
) -> None:
    one = node()
    submitted = duetime("job", "submit", "--command", "touch made").out.strip()
    assert "knows the target @command" in duetime("why", submitted).out
    assert one.end(signal.SIGTERM)[0] == 0
    assert not Path("made").exists()


def test_service_accepts_commands_only_with_the_setting_and_an_admin_key(
    duetime: Duetime, folder: Path
) -> None:
    store = f"sqlite:///{folder}/kept.db"
    keys = {
        scope: duetime("--store", store, "key", "create", scope, "--scopes", scope).out.strip()
        for scope in ("manage", "admin")
    }
    other = duetime("--store", store, "key", "create", "x", "--scopes", "admin", "--tenant", "x").out.strip()
    words = ("schedule", "add", "backup", "--command", "backup --all", "--every", "1h")
    with served(store, auth="keys") as address:
        refused = duetime("--server", address, "--key", keys["admin"], *words)
        assert (refused.status, "--allow-commands" in refused.err) == (1, True), refused.err
        assert "[commands_not_allowed]" in refused.err
    with served(store, auth="keys", allow_commands=True) as address:
        for key, code in ((keys["manage"], "[scope_missing]"), (other, "[tenant_not_allowed]")):
            refused = duetime("--server", address, "--key", key, *words)
            assert (refused.status, code in refused.err) == (1, True), refused.err
        done = duetime("--server", address, "--key", keys["admin"], *words, "--json")
        assert done.json["target"] == {"type": "command", "argv": ["backup", "--all"]}
        edit = (
            "schedule",
            "edit",
            "backup",
            "--target",
            "https://example.org/",
            "--header",
            "X-A: b",
            "--json",
        )
        assert duetime("--server", address, "--key", keys["admin"], *edit).json["target"]["headers"] == {
            "X-A": "b"
        }


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "target.argv"),
        ({"argv": "ls -l"}, "target.argv"),
        ({"argv": []}, "target.argv"),
        ({"argv": [""]}, "target.argv"),
        ({"argv": ["a\0b"]}, "target.argv"),
        ({"argv": ["a"] * (MAX_WORDS + 1)}, "target.argv"),
        ({"argv": ["a" * (MAX_LENGTH + 1)]}, "target.argv"),
        ({"argv": ["ls"], "cwd": "relative"}, "target.cwd"),
        ({"argv": ["ls"], "shell": True}, "target.shell"),
    ],
)
def test_invalid_command_names_its_field(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        CommandTarget.from_json({"type": "command", **fields})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["task", "--command", "ls"], "give one of a task, a URL, --command, --shell or --destination"),
        ([], "give one of a task"),
        (["task", "--cwd", "/"], "works only with --command"),
        (["task", "--header", "a: b"], "works only with a URL"),
        (["https://example.org", "--header", "ab"], "must be written 'Name: value'"),
        (["--command", "a 'b"], "cannot be split into words"),
    ],
)
def test_wrong_targets_are_usage_errors(duetime: Duetime, words: list[str], message: str) -> None:
    done = duetime("job", "submit", *words)
    assert (done.status, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("over_http", [False, True])
def test_schedule_add_and_edit_take_policies_headers_and_labels(
    duetime: Duetime, folder: Path, over_http: bool
) -> None:
    store = f"sqlite:///{folder}/kept.db"
    assert duetime("--store", store, "migrate").status == 0
    with served(store) as address:
        where = ("--server", address) if over_http else ("--store", store)
        policies = (
            "--timeout",
            "5m",
            "--max-attempts",
            "3",
            "--retry-delay",
            "10s",
            "--delivery",
            "at_most_once",
        )
        more = ("--header", "X-Team: billing", "--label", "team=billing", "--json")
        url = "https://agent.example.org/run"
        made = duetime(*where, "schedule", "add", "a", url, "--every", "1h", *policies, *more).json
        assert (made["timeout"], made["delivery"], made["labels"]) == (
            "5m",
            "at_most_once",
            {"team": "billing"},
        )
        assert (made["retry"]["max_attempts"], made["retry"]["first_delay"]) == (3, "10s")
        assert made["target"]["headers"] == {"X-Team": "billing"}
        words = (
            "--timeout",
            "1m",
            "--max-attempts",
            "2",
            "--delivery",
            "at_least_once",
            "--label",
            "a=b",
            "--json",
        )
        edited = duetime(*where, "schedule", "edit", "a", *words).json
        assert (edited["timeout"], edited["delivery"], edited["labels"]) == (
            "1m",
            "at_least_once",
            {"a": "b"},
        )
        assert edited["retry"]["max_attempts"] == 2
        assert json.dumps(edited["target"]) == json.dumps(made["target"]), "the rest stays"
