"""Reads duration and picture size of an MP4 file from its boxes (ISO/IEC 14496-12), without decoding it.

A file is a list of boxes: 4 bytes size, 4 bytes name, content. `moov` holds `mvhd` (duration of all) and one
`trak` for each track, with its picture size in `tkhd`. The boxes may come in any order: `moov` is often last.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple

HEADER, LONG_SIZE, SHORT, LONG = Struct(">I4s"), Struct(">Q"), Struct(">II"), Struct(">IQ")
PICTURE = Struct(">II")
MAX_BOXES = 10_000  # of one level: a file with more is not made by a camera
MAX_HEADER_BOX = 200  # bytes of mvhd and tkhd that matter


class Mp4Damaged(ValueError):
    """The boxes do not fit together."""


class Mp4Facts(NamedTuple):
    seconds: float
    width: int | None
    height: int | None


class Box(NamedTuple):
    name: bytes
    start: int  # of the content
    end: int


def read_mp4(file: BinaryIO, size: int) -> Mp4Facts:
    movie = next((box for box in _boxes(file, 0, size) if box.name == b"moov"), None)
    if movie is None:
        raise Mp4Damaged("it has no table of contents (moov): it is incomplete")
    seconds: float | None = None
    pictures: list[tuple[int, int]] = []
    for box in _boxes(file, movie.start, movie.end):
        if box.name == b"mvhd":
            seconds = _duration(_content(file, box))
        elif box.name == b"trak":
            pictures += [
                _picture_size(_content(file, inner))
                for inner in _boxes(file, box.start, box.end)
                if inner.name == b"tkhd"
            ]
    if seconds is None:
        raise Mp4Damaged("it does not say how long it is (mvhd)")
    width, height = max(pictures, key=lambda pair: pair[0] * pair[1], default=(0, 0))
    return Mp4Facts(seconds, width or None, height or None)


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[Box]:
    position = start
    for _ in range(MAX_BOXES):
        if position + HEADER.size > end:
            return
        file.seek(position)
        size, name = HEADER.unpack(_exactly(file, HEADER.size))
        content = position + HEADER.size
        if size == 1:  # the size is too large for 4 bytes
            (size,) = LONG_SIZE.unpack(_exactly(file, LONG_SIZE.size))
            content += LONG_SIZE.size
        elif size == 0:  # up to the end of the file
            size = end - position
        if position + size < content or position + size > end:
            raise Mp4Damaged(
                f"its part {name.decode('latin-1')!r} ends outside of the file: it is incomplete"
            )
        yield Box(name, content, position + size)
        position += size
    raise Mp4Damaged("it has too many parts")


def _content(file: BinaryIO, box: Box) -> bytes:
    file.seek(box.start)
    return _exactly(file, min(box.end - box.start, MAX_HEADER_BOX))


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise Mp4Damaged("it ends too early")
    return found


def _duration(header: bytes) -> float:
    """Version 1 has 8-byte times, version 0 has 4-byte times."""
    fields, start = (LONG, 20) if header[:1] == b"\x01" else (SHORT, 12)
    if len(header) < start + fields.size:
        raise Mp4Damaged("its header (mvhd) is too short")
    scale, duration = fields.unpack_from(header, start)
    if scale == 0:
        raise Mp4Damaged("its clock (mvhd) stands still")
    return float(duration / scale)


def _picture_size(header: bytes) -> tuple[int, int]:
    """The last two fields, in 1/65536 of a pixel; zero for sound."""
    start = (96 if header[:1] == b"\x01" else 84) - PICTURE.size
    if len(header) < start + PICTURE.size:
        raise Mp4Damaged("a track header (tkhd) is too short")
    width, height = PICTURE.unpack_from(header, start)
    return width >> 16, height >> 16
