"""Answers read as values. What cannot be read is told as what it is: a service this client does not understand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from duetime.errors import ServiceError
from duetime.model.codec import reader
from duetime.remote.talk import Reply

Kind = TypeVar("Kind")


def read(kind: type[Kind], reply: Reply) -> Kind:
    try:
        found: Kind = _reader_of(kind)(reply.body)
    except ValueError as problem:
        kind_told = reply.headers.get("content-type", "").partition(";")[0].strip()
        if kind_told == "text/html":
            raise ServiceError("a web page was answered: give the address of the service alone, without /ui or another path") from None
        raise ServiceError(f"the answer cannot be read ({problem}): is it a Duetime service, and of a version like this one?") from None
    return found


def _reader_of(kind: Any) -> Callable[[bytes], Any]:
    """Made once for each kind."""
    if kind not in _READERS:
        _READERS[kind] = reader(kind)
    return _READERS[kind]


_READERS: dict[Any, Callable[[bytes], Any]] = {}
