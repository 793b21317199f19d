"""What JSON would change without a word is refused at the call, and the error names the annotation to write."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from django.db.models import TextChoices
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe

from duetime.errors import InvalidPayload
from duetime.invokers.signature import Signature
from duetime.model import codec
from duetime.model.codec import decode, encode, encode_payload

MOMENT = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Status(TextChoices):
    NEW = "new"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    id: UUID
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Special(Order):
    gift: bool = True


@dataclass(eq=False)
class Untold:
    number: int


class Person(pydantic.BaseModel):
    name: str
    more: Any = None


class Sized(msgspec.Struct):
    value: Any


class Address(TypedDict):
    street: Any


class FakeDatetime(datetime):
    """As freezegun's."""


class FakeDate(date):
    pass


class Span(timedelta):
    """As pendulum's."""


class Text(str):
    def __str__(self) -> str:
        return self


class Float(float):
    pass


class Bytes(bytes):
    pass


class Exact(Decimal):
    pass


def bare(value): ...  # type: ignore[no-untyped-def]  # without annotations: that is the case under test


def as_any(value: Any) -> None: ...


def as_dict(value: dict) -> None: ...  # type: ignore[type-arg]


def as_named(value: dict[str, Any]) -> None: ...


def as_text(value: str) -> None: ...


def as_list(value: list[Any]) -> None: ...


def as_order(value: Order) -> None: ...


def as_union(value: UUID | str) -> None: ...


def as_model(value: Person) -> None: ...


def as_struct(value: Sized) -> None: ...


def as_address(value: Address) -> None: ...


def as_set(value: set) -> None: ...  # type: ignore[type-arg]


def as_numbered(value: dict[int, Any]) -> None: ...


def as_datetime(value: datetime) -> None: ...


REFUSED: list[tuple[Callable[..., None], Any, str]] = [
    (bare, MOMENT, "value: is a datetime, which arrives as text: annotate the parameter (value: datetime)"),
    (bare, MOMENT.replace(tzinfo=None), "value: is a datetime, which arrives as text"),
    (bare, FakeDatetime(2026, 1, 1), "annotate the parameter (value: datetime)"),
    (bare, date(2026, 1, 1), "annotate the parameter (value: date)"),
    (bare, time(9, 30), "annotate the parameter (value: time)"),
    (bare, timedelta(hours=1), "annotate the parameter (value: timedelta)"),
    (bare, Decimal("1.10"), "value: is a Decimal, which arrives as text: annotate the parameter (value: Decimal)"),
    (bare, UUID(int=1), "value: is a UUID, which arrives as text: annotate the parameter (value: UUID)"),
    (bare, b"\x00", "annotate the parameter (value: bytes)"),
    (bare, {3: "x"}, "value: has keys of type int, which arrive as text: annotate the parameter (value: dict[int, Any])"),
    (bare, {1: "a", "1": "b"}, "value: has keys of type int"),
    (bare, {"a": {1.5: 1}}, "value.a: has keys of type float, which arrive as text: say so in the annotation of 'value', "
     "or give keys that are text"),
    (bare, {1, 2}, "value: is a set, which arrives as a list: annotate the parameter (value: set)"),
    (bare, Colour.RED, "value: is a Colour, which arrives as text: annotate the parameter (value: Colour)"),
    (bare, Point(1, 2), "value: is a Point, which arrives as a list"),
    (bare, Order(UUID(int=1)), "value: is an Order, which arrives as a dict"),
    (bare, Person(name="Ada"), "value: is a Person, which arrives as a dict"),
    (bare, [{"when": [MOMENT]}], "value[0].when[0]: is a datetime, which arrives as text: say so in the annotation of "
     "'value', or give value.isoformat()"),
    (bare, (1, (MOMENT,)), "value[1][0]: is a datetime"),
    (as_any, MOMENT, "value: is a datetime"),
    (as_dict, {"when": MOMENT}, "value.when: is a datetime"),
    (as_named, {"id": UUID(int=1)}, "value.id: is a UUID"),
    (as_named, {3: "x"}, "value: has keys of type int"),
    (as_list, ["x", Decimal(1)], "value[1]: is a Decimal"),
    (as_text, MOMENT, "value: is a datetime, which arrives as text"),
    (as_union, UUID(int=1), "value: is a UUID, which arrives as text"),
    (as_order, Order(UUID(int=1), {"when": MOMENT}), "value.extra.when: is a datetime"),
    (as_order, {"id": str(UUID(int=1)), "extra": {"when": MOMENT}}, "value.extra.when: is a datetime"),
    (as_order, Special(UUID(int=1)), "value: is a Special, which arrives as Order"),
    (as_model, Person(name="Ada", more=MOMENT), "value.more: is a datetime"),
    (as_struct, Sized(MOMENT), "value.value: is a datetime"),
    (as_address, {"street": MOMENT}, "value.street: is a datetime"),
    (as_set, {MOMENT}, "value[0]: is a datetime"),
    (as_numbered, {1: MOMENT}, "value[1]: is a datetime"),
    (as_numbered, {"1": MOMENT}, "value.1: is a datetime"),
    (as_datetime, FakeDatetime(2026, 1, 1), "value: 2026-01-01T00:00:00 has no time zone"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "value", "message"), REFUSED, ids=lambda part: getattr(part, "__name__", type(part).__name__)
)
def test_value_that_would_arrive_changed_is_refused(
    function: Callable[..., None], value: Any, message: str
) -> None:
    with pytest.raises(InvalidPayload) as refused:
        Signature("work", function).encode({"value": value})
    assert message in str(refused.value)


TAKEN: list[tuple[Callable[..., None], Any, Any]] = [
    (bare, Text("<b>"), "<b>"),
    (bare, mark_safe("<b>"), "<b>"),
    (bare, [lazystr("Hello")], ["Hello"]),
    (as_text, lazystr(mark_safe("Hello")), "Hello"),
    (bare, PurePosixPath("/srv/a"), "/srv/a"),
    (bare, Float(1.5), 1.5),
    (bare, Level.HIGH, 3),
    (bare, Status.NEW, "new"),
    (bare, [True, None, {"a": 2**70}], [True, None, {"a": 2**70}]),
    (bare, (1, (2,)), [1, [2]]),
    (bare, OrderedDict(a=Counter("aa")), {"a": {"a": 2}}),
    (bare, {Text("a"): 1}, {"a": 1}),
    (as_union, "text", "text"),
    (as_order, {"id": str(UUID(int=1)), "extra": {"n": (1,)}}, Order(UUID(int=1), {"n": [1]})),
    (as_order, Order(UUID(int=1), {"n": (1,)}), Order(UUID(int=1), {"n": [1]})),
    (as_model, {"name": "Ada", "more": [1]}, Person(name="Ada", more=[1])),
    (as_datetime, "2026-11-15T09:30:00Z", MOMENT),
    (as_numbered, {1: {"a": 1}}, {1: {"a": 1}}),
    (as_numbered, {"1": {"a": 1}}, {1: {"a": 1}}),
]


@pytest.mark.parametrize(
    ("function", "value", "arrives"), TAKEN, ids=lambda part: getattr(part, "__name__", type(part).__name__)
)
def test_value_whose_change_hurts_no_task_is_taken(
    function: Callable[..., None], value: Any, arrives: Any
) -> None:
    signature = Signature("work", function)
    read = signature.read(signature.encode({"value": value}))["value"]
    assert read == arrives
    assert type(read) is type(arrives)


SUBCLASSES: list[tuple[Any, Any]] = [
    (datetime, FakeDatetime(2026, 11, 15, 9, 30, tzinfo=UTC)),
    (date, FakeDate(2026, 11, 15)),
    (timedelta, Span(hours=1, microseconds=5)),
    (Decimal, Exact("1.10")),
    (bytes, Bytes(b"\x00\xff")),
    (Path, Path("/srv/a")),
    (list[PurePosixPath], [PurePosixPath("a")]),
    (Untold, Untold(3)),
    # put back at 3 o'clock: the hour that is there twice
    (datetime, datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)),
]


@pytest.mark.parametrize(
    ("annotation", "value"), SUBCLASSES, ids=lambda part: getattr(part, "__name__", type(part).__name__)
)
def test_subclass_is_written_as_its_base(annotation: Any, value: Any) -> None:
    def work(value: Any, rest: list[int]) -> None: ...

    work.__annotations__["value"] = annotation
    signature = Signature("work", work)
    read = signature.read(signature.encode({"value": value, "rest": [1]}))["value"]
    if isinstance(value, datetime):
        assert read.timestamp() == value.timestamp()
    elif isinstance(value, Untold):
        assert read.number == 3
    else:
        assert read == value
    assert isinstance(read, annotation if isinstance(annotation, type) else list)


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin"), None])
def test_datetime_of_another_class_is_the_same_text(zone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = datetime(2026, 11, 15, 9, 30, 0, 5, tzinfo=zone)
    monkeypatch.setattr(codec, "datetime", FakeDatetime)  # as freezegun does with every module
    assert encode(FakeDatetime(2026, 11, 15, 9, 30, 0, 5, tzinfo=zone)) == encode(plain)


def test_path_that_is_no_text_is_refused() -> None:
    def work(value: Path) -> None: ...

    with pytest.raises(InvalidPayload, match="value: "):
        Signature("work", work).encode({"value": 5})


def test_value_without_a_parameter_of_its_own_is_to_be_given_as_json() -> None:
    def work(**options: Any) -> None: ...

    signature = Signature("work", work)
    with pytest.raises(
        InvalidPayload, match=r"when: is a datetime, which arrives as text: give value\.isoformat\(\)"
    ):
        signature.encode({"when": MOMENT})
    with pytest.raises(InvalidPayload, match="keys that are not text"):
        signature.encode({1: 2})
    assert signature.encode({"when": MOMENT.isoformat()}) == b'{"when":"2026-11-15T09:30:00+00:00"}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"when": MOMENT}, r"payload\.when: is a datetime, which arrives as text: give value\.isoformat\(\)"),
        ({"ids": [UUID(int=1)]}, r"payload\.ids\[0\]: is a UUID, which arrives as text: give str\(value\)"),
        ({1: "x"}, r"payload: has keys of type int, which arrive as text: give keys that are text"),
        ({Colour.RED: 1}, r"payload: has keys of type Colour"),
        ([{1}], r"payload\[0\]: is a set, which arrives as a list: give a list"),
        (MOMENT, r"payload: is a datetime"),
        (Order(UUID(int=1)), r"payload: is an Order, which arrives as a dict: give a dict"),
    ],
)
def test_reader_with_unknown_types_takes_plain_json_only(value: Any, message: str) -> None:
    with pytest.raises(InvalidPayload, match=message):
        encode_payload(value)


@pytest.mark.parametrize("value", [None, "x", 1, [1, (2,)], {"a": {"b": None}}, {"p": Path("x")}])
def test_plain_json_is_taken(value: Any) -> None:
    assert decode(encode_payload(value)) == decode(encode(value))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_value_nested_far_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidPayload, match="payload: cannot be written as JSON"):
        encode_payload({"value": nested(50_000)})

    def reach_the_limit(value: Any) -> Any:
        raise RecursionError

    # Since Python 3.14 encoding reaches deeper than `to_builtins`.
    monkeypatch.setattr(codec, "_builtins", reach_the_limit)
    with pytest.raises(InvalidPayload, match="payload: cannot be written as JSON"):
        encode_payload({"value": nested(40)})
    with pytest.raises(InvalidPayload, match="value: cannot be written as JSON"):
        Signature("work", bare).encode({"value": nested(40)})


def open_ended(**options: Any) -> None: ...


def zoned(value: Any, when: datetime | None = None) -> None: ...


@pytest.mark.parametrize("function", [bare, as_list, open_ended, zoned])
def test_stored_payload_nested_far_too_deep_is_refused(function: Callable[..., None]) -> None:
    stored = b'{"value":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    with pytest.raises(InvalidPayload):
        Signature("work", function).read(stored)


def test_stored_payload_deeper_than_python_may_look_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.14 decoding reaches deeper than what follows it."""

    def reach_the_limit(value: Any, **options: Any) -> Any:
        raise RecursionError

    signature = Signature("work", zoned)
    assert signature.read(b'{"value":1}')["value"] == 1
    monkeypatch.setattr(msgspec, "to_builtins", reach_the_limit)
    with pytest.raises(InvalidPayload):
        signature.read(b'{"value":1}')


def levels(value: Any) -> int:
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(levels, inner), default=0)


@pytest.mark.parametrize("depth", [*range(28, 35), 64])
@pytest.mark.parametrize("inside", [1, None, {}, 'a " [[[', "]" * 40])
def test_depth_that_the_bytes_show_is_that_of_the_value(depth: int, inside: Any) -> None:
    value: Any = inside
    for number in range(depth):
        value = [value] if number % 2 else {"]}": value, "more": [{}] * 20}
    if levels(value) <= codec.MAX_DEPTH:
        assert decode(encode_payload(value)) == value
    else:
        with pytest.raises(InvalidPayload, match="is nested deeper than 32 levels"):
            encode_payload(value)
