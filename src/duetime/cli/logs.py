"""Log records of a node on stderr: one line each, for people on a terminal and as JSON elsewhere; control characters escaped (S45), and
nothing that looks like a secret (S38)."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from duetime.cli.escape import visible, visible_lines

if TYPE_CHECKING:
    from duetime.model.events import Event

FIELDS = ("node", "request_id", "status", "job_id", "target", "attempt", "schedule")
COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
# Keys of ours, signing secrets, bearer tokens, passwords in addresses: whoever logs one by accident logs its beginning only.
SECRETS = re.compile(
    r"(?P<key>\bdt_[0-9a-z]{10}_)[0-9A-Za-z]{20,}"
    r"|(?P<signing>\bwhs(?:ec|k)_)[0-9A-Za-z+/=]{8,}"
    r"|(?P<bearer>(?i:\bbearer )|(?i:\bbasic ))[0-9A-Za-z._~+/=-]{8,}"
    r"|(?P<login>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+(?=@)"
)


class Origin(logging.Filter):
    """Adds the node's id to every record, once there is one. An observer of the app tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.node: int | None = None

    def __call__(self, event: Event) -> None:
        from duetime.model.events import NodeJoined

        if isinstance(event, NodeJoined):
            self.node = event.node

    def filter(self, record: logging.LogRecord) -> bool:
        if self.node is not None and not hasattr(record, "node"):
            record.node = self.node
        return True


def configure(level: str, form: str) -> Origin:
    handler = logging.StreamHandler(sys.stderr)
    terminal = sys.stderr.isatty()
    as_json = form == "json" or (form == "auto" and not terminal)
    handler.setFormatter(JsonLines() if as_json else TextLines(coloured=terminal and "NO_COLOR" not in os.environ))
    origin = Origin()
    handler.addFilter(origin)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return origin


class TextLines(logging.Formatter):
    """ "2030-01-01 09:00:00.000+01:00 INFO    duetime: node 1 joined"; a traceback follows on lines of its own."""

    def __init__(self, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
        fields = "".join(f" {name}={visible(value)}" for name, value in _fields(record).items())
        level = self._painted(f"{record.levelname:<7}", COLOURS.get(record.levelname, "0"))
        message = visible(without_secrets(record.getMessage()))
        line = f"{self._painted(moment, '2')} {level} {record.name}: {message}{self._painted(without_secrets(fields), '2')}"
        return f"{line}\n{visible_lines(without_secrets(self.formatException(record.exc_info)))}" if record.exc_info else line

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and text else text


class JsonLines(logging.Formatter):
    """One object a line: at, level, logger, message, what is known of node, request and job, and an error with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = without_secrets(record.getMessage())
        line = {"at": moment, "level": record.levelname.lower(), "logger": record.name, "message": message, **_fields(record)}
        if record.exc_info:
            line["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def without_secrets(text: str) -> str:
    return SECRETS.sub(lambda found: f"{found[found.lastgroup or 0]}***", text)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
