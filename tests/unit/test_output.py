"""The output of one attempt: the first and the last lines are kept, masked before they are cut."""

from __future__ import annotations

import pytest

from duetime.model.output import (
    MAX_FIRST,
    MAX_LAST,
    MAX_LINE_BYTES,
    PLACES,
    Line,
    OutputBuffer,
    gaps,
    level_name,
    read_output,
)
from duetime.model.stored import Record

SECRET = "C4n4ry" * 8


class Stored:
    """What a store has after the writes of a buffer."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.writes = 0

    def write(self, buffer: OutputBuffer) -> None:
        for place, value in buffer.take():
            self.parts[place] = value
            self.writes += 1
            buffer.written([place])

    @property
    def records(self) -> list[Record]:
        return [Record("output", "t", f"j/1/{place}", value, 1, None) for place, value in self.parts.items()]

    @property
    def lines(self) -> list[Line]:
        return read_output(self.records).lines

    @property
    def total(self) -> int:
        return read_output(self.records).total


def add(buffer: OutputBuffer, *texts: str) -> None:
    for text in texts:
        buffer.add(1_000, "log", "info", text)


def test_lines_are_kept_in_order_over_many_writes() -> None:
    buffer, stored = OutputBuffer(), Stored()
    for number in range(300):
        add(buffer, f"line {number}")
        stored.write(buffer)
    assert [line.text for line in stored.lines] == [f"line {number}" for number in range(300)]
    assert [line.number for line in stored.lines] == list(range(1, 301))


@pytest.mark.parametrize("per_write", [1, 7, 1_000, 50_000])
def test_first_and_last_lines_are_kept_within_bounds(per_write: int) -> None:
    buffer, stored = OutputBuffer(), Stored()
    count = 50_000 if per_write > 7 else 5_000
    for number in range(count):
        add(buffer, f"line {number:06d} of many")
        if number % per_write == 0:
            stored.write(buffer)
    stored.write(buffer)
    numbers = [line.number for line in stored.lines]
    assert stored.total == count
    assert numbers[0] == 1
    assert numbers[-1] == count
    holes = [(line, missing) for line, missing in gaps(stored.lines, stored.total) if missing]
    assert len(holes) >= 1
    assert sum(missing for _, missing in holes) == count - len(numbers)
    assert len(stored.parts) <= PLACES
    size = sum(map(len, stored.parts.values()))
    assert (MAX_FIRST + MAX_LAST) // 2 < size < 3 * (MAX_FIRST + MAX_LAST)
    # The first part is one piece, however the lines came.
    assert numbers[:400] == list(range(1, 401))
    assert numbers[-400:] == list(range(count - 399, count + 1))


def test_buffer_holds_little_while_nothing_can_be_written() -> None:
    buffer = OutputBuffer()
    for number in range(100_000):
        add(buffer, f"{number} {'x' * 100}")
    assert len(buffer._first) + len(buffer._last) < 1_500


def test_part_that_was_not_written_is_written_later() -> None:
    buffer, stored = OutputBuffer(), Stored()
    add(buffer, "one")
    lost = buffer.take()
    assert not buffer.waiting
    buffer.put_back(place for place, _ in lost)
    add(buffer, "two")
    stored.write(buffer)
    assert [line.text for line in stored.lines] == ["one", "two"]


def test_dropped_lines_are_counted() -> None:
    buffer, stored = OutputBuffer(), Stored()
    add(buffer, "one")
    buffer.leave_out(5)
    add(buffer, "two")
    stored.write(buffer)
    buffer.leave_out(3)
    stored.write(buffer)
    assert [line.number for line in stored.lines] == [1, 7]
    assert [missing for _, missing in gaps(stored.lines, stored.total)] == [0, 5, 3]


def test_another_process_goes_on_where_the_last_one_stopped() -> None:
    stored = Stored()
    for number in range(400):
        buffer = OutputBuffer(stored.records)
        add(buffer, f"line {number:04d} {'x' * 400}")
        stored.write(buffer)
    numbers = [line.number for line in stored.lines]
    assert stored.total == 400
    assert numbers[:60] == list(range(1, 61))
    assert numbers[-60:] == list(range(341, 401))
    assert len(stored.parts) <= PLACES


def test_secrets_are_masked_before_a_line_is_cut() -> None:
    buffer, stored = OutputBuffer(), Stored()
    # Were it cut first, the end of the line would be the beginning of a key that no pattern finds.
    add(buffer, f"{'x' * (MAX_LINE_BYTES - 10)} dt_0123456789_{SECRET}", f"postgresql://anna:{SECRET}@db/x")
    stored.write(buffer)
    assert SECRET[:6] not in "".join(line.text for line in stored.lines)
    assert stored.lines[0].text.endswith(" [cut]")
    assert stored.lines[1].text == "postgresql://anna:***@db/x"


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "é" * 9_000, "\u2028"])
def test_any_text_can_be_stored(text: str) -> None:
    buffer, stored = OutputBuffer(), Stored()
    add(buffer, text)
    stored.write(buffer)
    [line] = stored.lines
    assert len(line.text.encode()) <= MAX_LINE_BYTES + 10


@pytest.mark.parametrize(
    ("level", "name"), [(5, "debug"), (20, "info"), (25, "info"), (31, "warning"), (99, "critical")]
)
def test_levels_have_five_names(level: int, name: str) -> None:
    assert level_name(level) == name
