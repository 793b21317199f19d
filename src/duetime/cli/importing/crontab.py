"""A crontab as schedules of commands: the same expressions, in the zone of the machine or of CRON_TZ."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from duetime.cli.importing.result import Import
from duetime.errors import InvalidInput
from duetime.model import zone
from duetime.model.cron import MACROS

TIMEOUT = "1d"
SHELL = "/bin/sh"
_ASSIGNMENT = re.compile(r"""\s*(?P<name>[A-Za-z_]\w*|"[^"]*"|'[^']*')\s*=\s*(?P<value>.*)""")
_FIELDS = re.compile(r"(?P<when>@\w+|(?:\S+\s+){4}\S+)\s+(?P<rest>.*)")
_NOT_A_PROGRAM = re.compile(r"\w+=|-|\d+[smhd]?$|[<>&]")  # assignments, flags, numbers, redirections
_PERCENT = re.compile(r"(?<!\\)%")
# Words that say how, not what: the name comes from what follows them, or from the next command.
_WRAPPERS = frozenset(
    [
        "env",
        "nice",
        "ionice",
        "sudo",
        "exec",
        "sh",
        "bash",
        "python",
        "python3",
        "php",
        "node",
        "perl",
        "ruby",
        "flock",
        "timeout",
        "chronic",
    ]
)
_ASIDE = frozenset(["cd", "sleep", "export", "source", ".", "test", "["])


@dataclass(slots=True)
class _CrontabReader:
    made: Import
    system: bool  # lines name a user, as in /etc/crontab
    tz: str
    home: str | None
    variables: dict[str, str] = field(default_factory=dict)

    def line(self, number: int, text: str) -> None:
        if not text or text.startswith("#"):
            return
        source = f"line {number}: {text}"
        # An expression cannot match it: its second word would have to begin with "=".
        if (assignment := _ASSIGNMENT.fullmatch(text)) is not None:
            self._set(source, assignment["name"].strip("\"'"), _unquoted(assignment["value"]))
            return
        found = _FIELDS.fullmatch(text.removeprefix("-"))  # "-": cronie does not log it
        if found is None:
            self.made.skip(source, "is neither an assignment nor five fields and a command")
            return
        user, command = "", found["rest"]
        if self.system:
            user, _, command = command.partition(" ")
        self._schedule(source, found["when"], user, command.strip())

    def _set(self, source: str, name: str, value: str) -> None:
        match name:
            case "CRON_TZ":
                try:
                    self.tz = zone.load(value or "UTC").name
                except InvalidInput as problem:
                    self.made.skip(source, problem.reason)
            case "TZ":
                self.variables[name] = value
                self.made.remark(
                    f"{source}: some versions of cron also fire in this zone, Debian's does not: check tz"
                )
            case "MAILTO" | "MAILFROM":
                self.made.skip(source, "output is kept with the job, not sent: see on_failure and alerts")
            case "RANDOM_DELAY" | "CRON_WITHIN" | "START_HOURS_RANGE":
                self.made.skip(source, "has no counterpart: use jitter")
            case "HOME":
                self.home = value
            case _:
                self.variables[name] = value

    def _schedule(self, source: str, when: str, user: str, command: str) -> None:
        if when.lower() == "@reboot":
            self.made.skip(source, "there is no start of a machine here: run it when your program starts")
            return
        if when.startswith("@") and when.lower() not in MACROS:
            self.made.skip(source, f"{when} is not known")
            return
        if "~" in when:
            self.made.skip(source, "a random value (~) differs on each start of cron: write H in its place")
            return
        if not command:
            self.made.skip(source, "has no command")
            return
        target: dict[str, Any] = {"type": "command", "argv": self._argv(shell_line(command))}
        if self.home is not None:
            target["cwd"] = self.home
        entry = {
            "name": name_of(_split_input(command)[0]),
            "when": {"cron": " ".join(when.split()), "tz": self.tz},
            "target": target,
            "missed": "skip",
            "timeout": TIMEOUT,
            **({"owner": user} if user else {}),
        }
        differences = [f"it ran as {user}; a command runs as the user of the node"] if user else []
        if _split_input(command)[1]:
            differences.append("the text after % is written to its input by printf")
        self.made.add(entry, source, *differences)

    def _argv(self, line: str) -> list[str]:
        words = [self.variables.get("SHELL", SHELL), "-c", line]
        given = [f"{name}={value}" for name, value in self.variables.items() if name != "SHELL"]
        return ["/usr/bin/env", *given, *words] if given else words


def read_crontab(text: str, made: Import, *, tz: str, system: bool = False, home: str | None = None) -> None:
    """`tz` is the zone of the machine, `home` the folder that cron runs commands in, if it is known."""
    made.remark(f"Times are in {tz}, the zone of the machine, unless CRON_TZ says otherwise.")
    made.remark(f"cron has no time limit: a command ends after its timeout, here {TIMEOUT}.")
    made.remark(
        "cron skips what it missed while it did not run, hence `missed: skip`; the default is latest."
    )
    if home is None:
        made.remark("cron runs commands in the home folder of their user: set cwd where it matters.")
    reader = _CrontabReader(made, system, tz, home)
    for number, line in enumerate(text.splitlines(), 1):
        reader.line(number, line.strip())


def name_of(line: str) -> str:
    """The program that a line of shell is about."""
    for part in re.split(r"&&|\|\||[;|]", line):
        words = [word for word in part.strip(" ({})").split() if not _NOT_A_PROGRAM.match(word)]
        while words and PurePath(words[0]).name in _WRAPPERS:
            operands = 2 if PurePath(words[0]).name == "flock" else 1  # the file of the lock
            words = words[operands:]
        if words and words[0] not in _ASIDE:
            return PurePath(words[0].strip("'\"")).name or "job"
    return "job"


def shell_line(command: str) -> str:
    """The line for a shell that does what cron does with this command, which has its input after a %."""
    line, rest = _split_input(command)
    if not rest:
        return line
    end = "\n" if "#" in line else " "  # a comment would hide the end
    return f"printf '%s\\n' {shlex.join(rest)} | ( {line}{end})"


def line_of(target: Mapping[str, Any]) -> str | None:
    """The line for a shell in an imported target."""
    argv = list(target.get("argv", ()))
    return argv[-1] if len(argv) >= 3 and argv[-2] == "-c" else None


def _unquoted(value: str) -> str:
    text = value.strip()
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else text


def _split_input(command: str) -> tuple[str, list[str]]:
    """The first % ends the command, the others end lines of its input; \\% stands for %."""
    line, *rest = (part.replace("\\%", "%") for part in _PERCENT.split(command))
    return line.strip(), rest
