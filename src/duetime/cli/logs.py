"""Log records of a node on stderr: one line each, text on a terminal and JSON otherwise; control
characters are escaped and secrets masked."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

from duetime.cli.format import visible, visible_lines
from duetime.model.events import Event, NodeJoined
from duetime.model.masking import without_secrets
from duetime.tracing import current_span

FIELDS = ("node", "request_id", "status", "job_id", "target", "attempt", "schedule", "trace_id", "span_id")
COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


class NodeIdFilter(logging.Filter):
    """Adds the node's id to every record, once there is one, and the ids of the trace. It is also an
    observer of the app, which reports the node's id."""

    def __init__(self) -> None:
        super().__init__()
        self.node: int | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, NodeJoined):
            self.node = event.node

    def filter(self, record: logging.LogRecord) -> bool:
        if self.node is not None and not hasattr(record, "node"):
            record.node = self.node
        span = current_span()
        if span is not None:
            record.trace_id, record.span_id = span.id.trace_text, span.id.span_text
        return True


def configure(level: str, form: str) -> NodeIdFilter:
    handler = logging.StreamHandler(sys.stderr)
    terminal = sys.stderr.isatty()
    as_json = form == "json" or (form == "auto" and not terminal)
    handler.setFormatter(
        JsonLines() if as_json else TextLines(coloured=terminal and "NO_COLOR" not in os.environ)
    )
    node_id = NodeIdFilter()
    handler.addFilter(node_id)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return node_id


class TextLines(logging.Formatter):
    """ "2030-01-01 09:00:00.000+01:00 INFO    duetime: node 1 joined"; a traceback follows on lines of its
    own."""

    def __init__(self, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        moment = (
            datetime.fromtimestamp(record.created, UTC)
            .astimezone()
            .isoformat(sep=" ", timespec="milliseconds")
        )
        fields = "".join(f" {name}={visible(value)}" for name, value in _fields(record).items())
        level = self._painted(f"{record.levelname:<7}", COLOURS.get(record.levelname, "0"))
        message = visible(without_secrets(record.getMessage()))
        at, extra = self._painted(moment, "2"), self._painted(fields, "2")
        line = f"{at} {level} {record.name}: {message}{extra}"
        return (
            f"{line}\n{visible_lines(without_secrets(self.formatException(record.exc_info)))}"
            if record.exc_info
            else line
        )

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and text else text


class JsonLines(logging.Formatter):
    """One object per line: at, level, logger, message, the ids of node, request and job if known, and an
    error with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = (
            datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        message = without_secrets(record.getMessage())
        line = {
            "at": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **_fields(record),
        }
        if record.exc_info:
            line["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
    return {
        name: without_secrets(value) if isinstance(value, str) else value for name, value in given.items()
    }
