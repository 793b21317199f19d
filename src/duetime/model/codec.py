"""JSON encoding and decoding. Every job decodes its payload, and msgspec does that six times as fast as the
standard library.

A shape is the compiled form of a function's annotations: it reads bytes straight into the arguments of the
function.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from duetime.errors import InvalidInput, InvalidPayload, PayloadTooLarge
from duetime.model.unchanged import are_plain, find_change, lazy_text

MAX_PAYLOAD = 256 * 1024
MAX_RESULT = 256 * 1024
MAX_DEPTH = 32
REQUIRED: Any = msgspec.NODEFAULT
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_EVERYDAY = (
    Any,
    str,
    int,
    float,
    bool,
    list,
    dict,
)  # certainly readable: most arguments need no further check
_WHERE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`)?", re.DOTALL)


def _datetime_text(value: datetime) -> str:
    """As msgspec writes it."""
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


# msgspec does not know their subclasses: SafeString of Django, datetimes of pendulum and freezegun.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (Enum, lambda value: value.value),  # of a metaclass of its own, such as Django's choices
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (datetime, _datetime_text),
    (date, date.isoformat),
    (timedelta, lambda value: timedelta.__add__(value, timedelta())),
    (Decimal, Decimal),
    (bytes, memoryview),
    (PurePath, str),
)


def _encode_other(value: Any) -> Any:
    """Encodes types that msgspec does not know; subclasses as their base."""
    for base, write in _BASES:
        if isinstance(value, base) and not isinstance(value, bool):  # a key: msgspec knows the values
            return write(value)
    if isinstance(value, lazy_text()):
        return str.__str__(str(value))
    if isinstance(value, _pydantic_model()):
        # By alias, because the model reads it back by alias.
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"objects of type {type(value).__name__} are not JSON")


def _decode_other(wanted: Any, value: Any) -> Any:
    if issubclass(wanted, PurePath):
        return wanted(value)
    try:
        return wanted.model_validate(value)
    except ValueError as problem:
        raise ValueError(_first_complaint(problem)) from None


def _first_complaint(problem: Any) -> str:
    """The one line of pydantic's long message that says what is wrong."""
    first = problem.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _pydantic_model() -> Any:
    """We never import pydantic: a program that uses its models has done so."""
    return getattr(sys.modules.get("pydantic"), "BaseModel", ())


_encoder = msgspec.json.Encoder(decimal_format="string", enc_hook=_encode_other)
_asdict = msgspec.structs.asdict
decode = msgspec.json.Decoder().decode
# MessagePack, for rows of stores: smaller, and bytes stay bytes
pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode
encode = _encoder.encode


def encode_payload(value: Any, field: str = "payload") -> bytes:
    """The JSON bytes of a caller's value, for a reader whose types are not known here: what would arrive
    changed is refused."""
    data = encode_arguments(value, field)
    if not are_plain((value,)):
        arrived = decode(data)
        if arrived != value and (change := find_change(value, arrived)):
            raise InvalidPayload(change.field_in(field), change.reason(annotated=False))
    return data


def encode_arguments(value: Any, field: str = "payload") -> bytes:
    """The JSON bytes of a caller's value, for a reader that knows its types. Rejects values that JSON, the
    size limit or a store does not allow."""
    try:
        data = _encoder.encode(value)
        # The bytes show that most values need no closer look.
        nested = len(data) > 2 * MAX_DEPTH and data.count(b"{") + data.count(b"[") >= MAX_DEPTH
        suspect = (nested or b"null" in data or b"\\u0000" in data) and _is_suspect(value, data)
        checked = _builtins(value) if suspect else None
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        raise InvalidPayload(
            field, f"cannot be written as JSON ({problem}): use plain values, lists and objects"
        ) from None
    if len(data) > MAX_PAYLOAD:
        raise PayloadTooLarge(
            field,
            f"{len(data):,} bytes is over the limit of {MAX_PAYLOAD:,}: store the data and pass a reference",
        )
    if checked is not None:
        _check(checked, field, MAX_DEPTH)
    return data


def _is_suspect(value: Any, data: bytes) -> bool:
    """Whether it needs the look, as built-in types: that includes sets, dataclasses and similar."""
    return b"\\u0000" in data or (b"null" in data and decode(data) != value) or _is_deep(data)


def _is_deep(data: bytes) -> bool:
    brackets = _STRING.sub(b"", data).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_DEPTH - 1):  # each time without its innermost level
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_other)


def _check(value: Any, field: str, depth: int) -> None:
    """Rejects values that msgspec accepts but that would change: NaN becomes null, and NUL cannot be stored
    as text."""
    if depth == 0:
        raise InvalidPayload(field, f"is nested deeper than {MAX_DEPTH} levels")
    match value:
        case float() if not math.isfinite(value):
            raise InvalidPayload(field, f"{value} is not a JSON number")
        case str() if "\0" in value:
            raise InvalidPayload(field, "text must not contain the NUL character")
        case dict():
            for key, item in value.items():
                _check(key, field, depth - 1)
                _check(item, f"{field}.{key}", depth - 1)
        case list() | tuple():
            for item in value:
                _check(item, field, depth - 1)
        case _:
            pass


def encode_result(value: Any) -> bytes:
    """The JSON bytes of what a task returned; InvalidInput says why it cannot be stored."""
    try:
        data = encode(value)
        if b"null" in data:
            refuse_nan(value, "result")
    except InvalidInput:
        raise
    except Exception as problem:  # a model of the task writes itself, and may raise anything
        remedy = "return plain values, lists and objects, or nothing"
        raise InvalidInput(
            "result", f"the task returned something that is not JSON ({problem}): {remedy}"
        ) from None
    if len(data) > MAX_RESULT:
        raise InvalidInput(
            "result",
            f"{len(data):,} bytes is over the limit of {MAX_RESULT:,}: "
            "store it elsewhere and return a reference",
        )
    return data


def refuse_nan(value: Any, field: str) -> None:
    """Rejects NaN and infinity, which msgspec writes as null. Only a value with a null in its JSON needs this
    look."""
    _refuse_nan(_builtins(value), field)


def _refuse_nan(value: Any, field: str) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise InvalidInput(field, f"{value} is not a JSON number: use None or text instead")
        case dict():
            for key, item in value.items():
                _refuse_nan(item, f"{field}.{key}")
        case list() | tuple():
            for item in value:
                _refuse_nan(item, field)
        case _:
            pass


def reader(wanted: Any) -> Callable[[bytes], Any]:
    """Reads JSON bytes as this type. For messages between our own processes."""
    return msgspec.json.Decoder(wanted).decode


class _ReportHead(msgspec.Struct):
    token: str


_report_head = msgspec.json.Decoder(_ReportHead)


def token_in(data: bytes) -> str | None:
    """The member "token" of a JSON object. Reads over everything else without making objects of it."""
    try:
        return _report_head.decode(data).token
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class Argument(NamedTuple):
    """A parameter as the function declares it."""

    annotation: Any  # Any if there is none or it cannot be resolved
    default: Any = REQUIRED


class Shape:
    """Named arguments and their types. Arguments without a usable type are not checked.

    `read` returns the arguments for the call, with defaults. InvalidPayload names the argument and the
    expected type. `explain` runs before that and may raise a better error.
    """

    def __init__(
        self,
        arguments: Mapping[str, Argument],
        open_ended: bool,
        explain: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        types = {name: _readable(argument) for name, argument in arguments.items()}
        self.typed = any(wanted is not Any for wanted in types.values())
        self._zoned = any(_mentions_datetime(wanted) for wanted in types.values())
        fields = [(name, wanted, _default(arguments[name].default)) for name, wanted in types.items()]
        self._struct = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=not open_ended
        )
        self._decode = msgspec.json.Decoder(self._struct, dec_hook=_decode_other).decode
        self._explain = explain
        self.read: Callable[[bytes], dict[str, Any]] = self._choose(open_ended)

    def verify(self, data: bytes) -> None:
        """As `read`, without the values."""
        if self._zoned:
            self.read(data)
            return
        try:
            self._decode(data)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise _unfit(problem) from None

    def _choose(self, open_ended: bool) -> Callable[[bytes], dict[str, Any]]:
        """Nearly all tasks use plain `_read`."""
        if open_ended:
            return self._read_open_ended
        return self._read_zoned if self._zoned else self._read

    def _read(self, data: bytes) -> dict[str, Any]:
        try:
            return _asdict(self._decode(data))
        except (msgspec.DecodeError, RecursionError) as problem:
            self._explain(data)
            raise _unfit(problem) from None

    def _read_zoned(self, data: bytes) -> dict[str, Any]:
        values = self._read(data)
        try:
            _refuse_naive(msgspec.to_builtins(values, builtin_types=(datetime,), enc_hook=_encode_other), "")
        except RecursionError as problem:
            raise _unfit(problem) from None
        return values

    def _read_open_ended(self, data: bytes) -> dict[str, Any]:
        known = self._read_zoned(data) if self._zoned else self._read(data)
        try:
            return {**decode(data), **known}
        except RecursionError as problem:
            raise _unfit(problem) from None


def _default(value: Any) -> Any:
    """The function's own default. It is not copied, just as a call in Python does not copy it."""
    if value is REQUIRED or value is None or isinstance(value, str | int | float):
        return value
    return msgspec.field(default_factory=lambda: value)


def _readable(argument: Argument) -> Any:
    """The annotation, or Any if JSON cannot be read as this type."""
    wanted = argument.annotation
    if argument.default is None and wanted is not Any:
        wanted = _or_none(wanted)
    if wanted in _EVERYDAY:
        return wanted
    try:
        msgspec.json.Decoder(wanted)
        parts = list(_parts(wanted))
    except Exception:
        return Any
    return (
        Any
        if any(isinstance(part, msgspec.inspect.CustomType) and not _is_decodable(part.cls) for part in parts)
        else wanted
    )


def _or_none(wanted: Any) -> Any:
    """`month: str = None` also allows None."""
    try:
        return wanted | None
    except TypeError:
        return Any


def _is_decodable(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, (PurePath, _pydantic_model()))


def _mentions_datetime(wanted: Any) -> bool:
    return wanted not in _EVERYDAY and any(
        isinstance(part, msgspec.inspect.DateTimeType) and part.tz is None for part in _parts(wanted)
    )


def _parts(wanted: Any) -> Iterator[Any]:
    """The type as msgspec sees it, and every type inside it. Types may contain themselves."""
    waiting: list[Any] = [msgspec.inspect.type_info(wanted)]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(part)
        elif isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field) and id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(getattr(part, name) for name in part.__struct_fields__)


def _refuse_naive(value: Any, field: str) -> None:
    match value:
        case datetime() if value.tzinfo is None:
            raise InvalidPayload(
                field,
                f"{value.isoformat()} has no time zone: give an aware datetime, like {value.isoformat()}Z",
            )
        case dict():
            for key, item in value.items():
                _refuse_naive(item, f"{field}.{key}" if field else str(key))
        case list() | tuple():
            for number, item in enumerate(value):
                _refuse_naive(item, f"{field}[{number}]")
        case _:
            pass


def _unfit(problem: BaseException) -> InvalidPayload:
    """Converts a message like "Expected `str`, got `int` - at `$.customer`" to the form of our errors."""
    found = _WHERE.fullmatch(str(problem))
    assert found is not None
    what = found["what"][:1].lower() + found["what"][1:]
    return InvalidPayload(found["path"] or "payload", f"a key: {what}" if found["key"] else what)
