"""The logger of an attempt, `ctx.log`: its records carry the ids of the job, and are kept as output."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

from duetime.errors import InvalidInput
from duetime.model.output import Stream

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_logger = logging.getLogger("duetime.task")
KeepLine = Callable[[Stream, int, str, bool], None]  # the last: whether the line was logged, too


class TaskLog(logging.LoggerAdapter[logging.Logger]):
    """A standard logger, and a call: `ctx.log("3 rows left out", table="orders")`. What has the level info or
    higher is kept as output, also if the program does not log it."""

    def __init__(self, about: dict[str, Any], keep: KeepLine) -> None:
        super().__init__(_logger, about)
        self._keep = keep

    def __call__(self, text: object, /, *, level: str = "info", **fields: object) -> None:
        """Log this text, followed by the fields as name=value."""
        if level not in LEVELS:
            raise InvalidInput("level", f"{level!r} is not a level: use one of {', '.join(LEVELS)}")
        self.log(LEVELS[level], "%s", " ".join([str(text), *(f"{k}={v}" for k, v in fields.items())]))

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        logged = self.isEnabledFor(level)
        if logged:
            super().log(level, msg, *args, **kwargs)
        if logged or level >= logging.INFO:
            self._keep(Stream.LOG, level, _text(msg, args, kwargs.get("exc_info")), logged)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Fields that the caller adds stay, next to the ids of the job."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # the caller of this class
        return msg, kwargs


def _text(msg: object, args: tuple[object, ...], exc_info: Any) -> str:
    record = logging.LogRecord("", 0, "", 0, msg, args, None)
    try:
        text = record.getMessage()
    except Exception:  # as in logging: wrong arguments must not end the task
        text = f"{msg} {args}"
    if exc_info:
        error = exc_info if isinstance(exc_info, BaseException) else None
        lines = traceback.format_exception(error) if error else [traceback.format_exc()]
        text = f"{text}\n{''.join(lines)}"
    return text.rstrip()


# Records of other loggers, for tasks that ask for them: output="logging".

current: ContextVar[KeepLine | None] = ContextVar("duetime_output", default=None)


class OutputHandler(logging.Handler):
    """Keeps what any logger logs while an attempt runs, in the attempt's own tasks and threads."""

    def emit(self, record: logging.LogRecord) -> None:
        keep = current.get()
        if keep is not None and record.name != _logger.name:  # those of ctx.log are kept already
            text = record.getMessage()
            if record.exc_info:
                text = f"{text}\n{''.join(traceback.format_exception(*record.exc_info))}".rstrip()
            keep(Stream.LOG, record.levelno, text, True)
        last = logging.lastResort
        if logging.root.handlers == [self] and last is not None and record.levelno >= last.level:
            last.handle(record)  # without this handler Python itself would have written it to stderr


_handler = OutputHandler()


def capture_logging() -> None:
    """From now on, for attempts that ask for it. May be called again."""
    if _handler not in logging.root.handlers:
        logging.root.addHandler(_handler)
