"""Spans in the format of OTLP, protobuf without its classes: those cost ten times as much as a small job.
The constant parts of a span are made once, by `shape_bytes`.

Numbers of fields are those of opentelemetry/proto/trace/v1/trace.proto. The tests compare every kind of span
with what OpenTelemetry's own encoder makes of it."""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Any
from uuid import UUID

from duetime.model.trace import SpanId

# A tag is the number of the field, shifted by 3, and the kind of its value: 0 varint, 1 eight bytes,
# 2 bytes with their length, 5 four bytes.
SPAN = b"\x12"  # of ScopeSpans
TRACE_ID, SPAN_ID, PARENT_ID = b"\x0a\x10", b"\x12\x08", b"\x22\x08"  # with their lengths
TIMES_AND_FLAGS = Struct("<cQcQ2sI")  # start_time_unix_nano = 7, end_time_unix_nano = 8, flags = 16
NAME, KIND, ATTRIBUTE, LINK, STATUS = b"\x2a", b"\x30", b"\x4a", b"\x6a", b"\x7a"
TRUE, FALSE, DOUBLE = b"\x10\x01", b"\x10\x00", Struct("<cd")  # of AnyValue
NO_ERROR = b"\x7a\x00"
IS_KNOWN, IS_REMOTE = 0x100, 0x200  # flags: whether the parent is in another process
REMOTE_FLAGS = b"\x35" + (IS_KNOWN | IS_REMOTE).to_bytes(4, "little")  # of a link
UNSIGNED = (1 << 64) - 1
UUID_PARTS = Struct("8s4s4s4s12s")
MESSAGE_ID_NAME, NO_UUID = "messaging.message.id", str(UUID(int=0))


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    parts = []
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


_LENGTHS = tuple(_varint(length) for length in range(1_024))


def field(tag: bytes, data: bytes) -> bytes:
    """Bytes with their length."""
    length = len(data)
    return tag + (_LENGTHS[length] if length < 1_024 else _varint(length)) + data


def _text(tag: bytes, text: str) -> bytes:
    return field(tag, text.encode("utf-8", "replace"))  # the text of an error may have anything


def _value(value: Any) -> bytes:
    """An AnyValue."""
    kind = type(value)
    if kind is str:
        return _text(b"\x0a", value)
    if kind is bool:
        return TRUE if value else FALSE
    if kind is int:
        return b"\x18" + _varint(value & UNSIGNED)
    return DOUBLE.pack(b"\x21", value) if kind is float else _text(b"\x0a", str(value))


def attribute(name: str, value: Any) -> bytes:
    return field(ATTRIBUTE, _key(name) + field(b"\x12", _value(value)))


@lru_cache(1_000)
def _key(name: str) -> bytes:
    return _text(b"\x0a", name)


MESSAGE_ID = attribute(MESSAGE_ID_NAME, NO_UUID)[: -len(NO_UUID)]  # the text of the id follows


def shape_bytes(name: str, kind: int, attributes: Mapping[str, Any]) -> bytes:
    """What is the same in many spans. `kind` is a number of OTLP, from 1 to 5."""
    return b"".join(
        (_text(NAME, name), KIND, _varint(kind), *(attribute(*item) for item in attributes.items()))
    )


def span_bytes(
    trace: bytes,
    span: int,
    shape: bytes,
    begin: int,
    end: int,
    message: UUID | None,
    attributes: Mapping[str, Any],
    parent: bytes | None,
    is_remote: bool,
    link: SpanId | None,
    error: str | None,
) -> bytes:
    """A span, as a field of ScopeSpans. `begin` and `end` are in nanoseconds; `message` is the id of a job,
    `is_remote` says that the parent is in another process, `error` why the span failed."""
    parts = [TRACE_ID, trace, SPAN_ID, span.to_bytes(8, "big"), shape]
    if message is not None:
        parts += MESSAGE_ID, _id_bytes(message)[1]
    if attributes:
        parts += [attribute(name, value) for name, value in attributes.items()]
    if parent is not None:
        parts += PARENT_ID, parent
    if link is not None:
        ids = TRACE_ID, link.trace.to_bytes(16, "big"), SPAN_ID, link.span.to_bytes(8, "big"), REMOTE_FLAGS
        parts.append(field(LINK, b"".join(ids)))
    flags = IS_KNOWN | IS_REMOTE if is_remote else IS_KNOWN
    parts.append(TIMES_AND_FLAGS.pack(b"\x39", begin, b"\x41", end, b"\x85\x01", flags))
    parts.append(NO_ERROR if error is None else field(STATUS, _text(b"\x12", error) + b"\x18\x02"))
    return field(SPAN, b"".join(parts))


# Of the first attempt of a job: trace, job, parent, begin, end.
EncodeChild = Callable[[bytes, UUID, bytes, int, int], bytes]


def child_encoder(shape: bytes) -> EncodeChild:
    """Makes most spans of attempts: those with a job and a parent in another process, without other
    attributes, link and error; their ids are the lower halves of those of their jobs. All lengths are known,
    so that one call does what `span_bytes` does."""
    named = shape + MESSAGE_ID
    last = b"\x85\x01" + (IS_KNOWN | IS_REMOTE).to_bytes(4, "little") + NO_ERROR
    rest = f"16s 2s 8s {len(named)}s 36s 2s 8s cQcQ {len(last)}s"
    first = SPAN + _varint(len(TRACE_ID) + Struct("<" + rest).size) + TRACE_ID
    pack = Struct(f"<{len(first)}s {rest}").pack

    def encode(trace: bytes, job: UUID, parent: bytes, begin: int, end: int) -> bytes:
        span, message = _id_bytes(job)
        # fmt: off
        return pack(
            first, trace, SPAN_ID, span, named, message, PARENT_ID, parent,
            b"\x39", begin, b"\x41", end, last,
        )
        # fmt: on

    return encode


def _id_bytes(id: UUID) -> tuple[bytes, bytes]:
    """Its lower half, and its text."""
    if type(id) is not UUID:  # of asyncpg: its `int` is slow
        return id.bytes[8:], str(id).encode()
    data = id.int.to_bytes(16, "big")
    return data[8:], b"-".join(UUID_PARTS.unpack(hexlify(data)))


def request_bytes(resource: bytes, scope: bytes, schema_url: str, spans: Iterable[bytes]) -> bytes:
    """A whole export: `spans` of one resource and one scope, by `span_bytes`. Such requests can be joined.
    Nearly a megabyte: it is copied once."""
    own, schema = field(b"\x0a", resource), _text(b"\x1a", schema_url) if schema_url else b""
    parts = [field(b"\x0a", scope), *spans]
    size = sum(map(len, parts))
    before = own + b"\x12" + _varint(size)
    whole = len(before) + size + len(schema)
    return b"".join((b"\x0a", _varint(whole), before, *parts, schema))
