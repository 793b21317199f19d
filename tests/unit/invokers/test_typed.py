"""Typed arguments: what annotations say is held at submit and at run, and what they cannot say is left
alone."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.errors import DuetimeError, InvalidPayload, UnknownOption
from duetime.invokers.task import Signature
from duetime.model.codec import encode
from tests.unit.invokers.attempts import invoke


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    price: Decimal
    parts: list[Line] = field(default_factory=list)


class Order(msgspec.Struct):
    id: UUID
    lines: list[Line]


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: float


class Person(pydantic.BaseModel):
    name: str
    born: date = pydantic.Field(alias="bornOn")


@dataclass
class Visit:
    at: datetime


class Opaque:
    """Nothing JSON could be read as."""


Customer = NewType("Customer", str)
Positive = Annotated[int, msgspec.Meta(gt=0)]
MOMENT = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (str, "text"),
    (int, 2**70),
    (float, 1.5),
    (bool, True),
    (datetime, MOMENT),
    (date, date(2026, 11, 15)),
    (timedelta, timedelta(hours=1, microseconds=5)),
    (UUID, UUID(int=5)),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.BLUE),
    (Literal["a", 1], "a"),
    (str | None, None),
    (int | str, "x"),
    (list[Line], [Line(Decimal("2.50"), [Line(Decimal(1))])]),
    (Order, Order(UUID(int=3), [Line(Decimal(3))])),
    (Address, {"street": "Elm"}),
    (Point, Point(1, 2.0)),
    (Person, Person(name="Ada", bornOn=date(1815, 12, 10))),
    (list[Person] | None, [Person(name="Ada", bornOn=date(1815, 12, 10))]),
    (dict[int, Colour], {1: Colour.RED}),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "a")),
    (Sequence[int], [1, 2]),
    (Mapping[str, date], {"a": date(2026, 1, 1)}),
    (bytes, b"\x00\xff"),
    (Customer, "c1"),
    (Positive, 3),
    (Visit, Visit(MOMENT)),
    (Any, {"any": ["thing"]}),
]


def signature_of(annotation: Any) -> Signature:
    def work(value): ...  # type: ignore[no-untyped-def]  # annotated below

    work.__annotations__["value"] = annotation
    return Signature("work", work)


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=lambda part: str(part)[:30])
def test_a_value_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    signature = signature_of(annotation)
    read = signature.read(signature.encode({"value": value}))["value"]
    assert read == value
    assert type(read) is type(value)


WRONG: list[tuple[Any, Any, str]] = [
    (str, 5, r"value: expected `str`, got `int`"),
    (int, "5", r"value: expected `int`, got `str`"),
    (int, True, r"value: expected `int`, got `bool`"),
    (int, None, r"value: expected `int`, got `null`"),
    (list[int], [1, "a"], r"value\[1\]: expected `int`, got `str`"),
    (
        list[Line],
        [{"price": "1", "parts": [{}]}],
        r"value\[0\]\.parts\[0\]: object missing required field `price`",
    ),
    (Order, {"id": "7", "lines": []}, r"value\.id: invalid UUID"),
    (Person, {"name": "Ada", "bornOn": "yesterday"}, r"value: bornOn: Input should be a valid date"),
    (Colour, "green", r"value: invalid enum value 'green'"),
    (Literal["a"], "b", r"value: invalid enum value 'b'"),
    (datetime, "2026-11-15T09:30:00", r"value: 2026-11-15T09:30:00 has no time zone"),
    (datetime, datetime(2026, 11, 15), r"value: 2026-11-15T00:00:00 has no time zone"),
    (list[Visit], [Visit(datetime(2026, 11, 15))], r"value\[0\]\.at: 2026-11-15T00:00:00 has no time zone"),
    (dict[int, int], {"a": 1}, r"value: a key: expected `int`"),
    (Positive, -1, r"value: expected `int` >= 1"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), WRONG, ids=lambda part: str(part)[:30])
def test_a_wrong_value_is_refused_at_submit_and_at_run(annotation: Any, value: Any, message: str) -> None:
    signature = signature_of(annotation)
    with pytest.raises(InvalidPayload, match=message):
        signature.encode({"value": value})
    with pytest.raises(InvalidPayload, match=message):
        signature.read(encode({"value": value}))


UNREADABLE: list[Any] = [
    Opaque, Opaque | None, list[Opaque], Callable[[], int], object, Decimal | str, UUID | str, Line | Visit, "Nowhere", "list[Nowhere]",
]  # fmt: skip


@pytest.mark.parametrize("annotation", UNREADABLE, ids=str)
def test_type_that_json_cannot_express_is_not_checked(annotation: Any) -> None:
    signature = signature_of(annotation)
    assert signature.read(signature.encode({"value": {"any": 1}})) == {"value": {"any": 1}}
    assert not signature.shape.typed


def test_unknown_name_does_not_hide_the_other_types() -> None:
    def work(one: Nowhere, two: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # that is the case under test

    with pytest.raises(InvalidPayload, match="two: expected `int`"):
        Signature("work", work).encode({"one": object, "two": "x"} | {"one": 1})


def test_a_class_may_be_defined_after_the_task() -> None:
    later: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef work(value: Later): ...", later)
    signature = Signature("work", later["work"])
    later["Later"] = int
    with pytest.raises(InvalidPayload, match="value: expected `int`"):
        signature.encode({"value": "x"})


def test_a_class_local_to_a_function_is_found() -> None:
    @dataclass
    class Local:
        number: int

    def work(value: Local) -> None: ...

    signature = Signature("work", work)
    assert signature.read(signature.encode({"value": Local(3)})) == {"value": Local(3)}


def test_a_default_of_none_allows_none() -> None:
    def work(value: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013  # people write it

    read = Signature("work", work).read
    assert read(b'{"value":null}') == {"value": None}
    assert read(b"{}") == {"value": None}


def test_defaults_are_the_function_s_own() -> None:
    shared = [Line(Decimal(1))]

    def work(lines: list[Line] = shared, *, n: int = 3) -> None: ...

    assert Signature("work", work).read(b"{}") == {"lines": shared, "n": 3}
    assert Signature("work", work).read(b"{}")["lines"] is shared


def test_an_open_ended_task_has_its_named_arguments_checked() -> None:
    def work(when: datetime, **others: Any) -> None: ...

    signature = Signature("work", work)
    assert signature.read(signature.encode({"when": MOMENT, "x": 1})) == {"when": MOMENT, "x": 1}
    with pytest.raises(InvalidPayload, match="when"):
        signature.encode({"when": 3})


def test_error_names_the_argument_that_is_not_json() -> None:
    def work(one: int, two: Any) -> None: ...

    with pytest.raises(InvalidPayload, match="two: cannot be written as JSON"):
        Signature("work", work).encode({"one": 1, "two": Opaque()})


def test_an_argument_that_went_away_is_told_at_run() -> None:
    """A payload that no longer fits: a clear error instead of a TypeError (kept for repair)."""

    def work(customer: str, month: str) -> None: ...

    read = Signature("work", work).read
    with pytest.raises(
        InvalidPayload, match=r"montt: task 'work' has no such argument: did you mean 'month'"
    ):
        read(b'{"customer":"c","month":"m","montt":1}')
    with pytest.raises(InvalidPayload, match=r"month: is required by task 'work'"):
        read(b'{"customer":"c"}')
    with pytest.raises(InvalidPayload, match="give an object, not list"):
        read(b"[1]")
    with pytest.raises(InvalidPayload, match="payload"):
        read(b'{"customer"')


def test_unknown_arguments_are_still_refused_at_submit() -> None:
    def work(customer: str) -> None: ...

    with pytest.raises(UnknownOption, match="did you mean 'customer'"):
        Signature("work", work).encode({"customer": "a", "custmer": "b"})


async def test_the_function_is_called_with_what_it_declares() -> None:
    async def work(order: Order, at: datetime | None = None) -> list[Any]:
        return [type(order).__name__, order.lines[0].price, at]

    given = {"order": {"id": str(UUID(int=1)), "lines": [{"price": "2.50"}]}}
    assert await invoke(work, given) == ["Order", Decimal("2.50"), None]


async def test_a_payload_that_does_not_fit_is_refused_before_anything_is_awaited() -> None:
    def work(number: int) -> None: ...

    with pytest.raises(InvalidPayload, match="number"):
        await invoke(work, {"number": "three"})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from([annotation for annotation, _ in VALUES]))
def test_any_json_is_read_or_refused_and_nothing_else(value: Any, annotation: Any) -> None:
    try:
        data = signature_of(annotation).encode({"value": value})
    except DuetimeError:
        return
    assert set(signature_of(annotation).read(data)) == {"value"}
