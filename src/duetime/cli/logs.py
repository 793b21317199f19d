"""Log records of a node on stderr: one line each, as text or JSON, control characters escaped (S45)."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from duetime.cli.escape import visible, visible_lines

FIELDS = ("job_id", "target", "attempt")


def configure(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class TextLines(logging.Formatter):
    """ "2030-01-01 09:00:00.000+01:00 INFO    duetime: node 1 joined"; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
        fields = "".join(f" {name}={visible(value)}" for name, value in _fields(record).items())
        line = f"{moment} {record.levelname:<7} {record.name}: {visible(record.getMessage())}{fields}"
        return f"{line}\n{visible_lines(self.formatException(record.exc_info))}" if record.exc_info else line


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"at": moment, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(), **_fields(record)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
