"""Small real files of every kind, made by the tests themselves."""

from __future__ import annotations

import io
import struct
import zipfile

from PIL import Image
from pypdf import PdfWriter


def image(kind: str = "PNG", width: int = 40, height: int = 30) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 90)).save(made, kind)
    return made.getvalue()


def photo(kind: str, width: int = 200, height: int = 150, frames: int = 1) -> bytes:
    """An image with a picture that does not compress well, so that most of the file is picture."""
    made = io.BytesIO()
    first, *others = [Image.effect_noise((width, height), 90).convert("RGB") for _ in range(frames)]
    first.save(made, kind, **({"save_all": True, "append_images": others} if others else {}))
    return made.getvalue()


def huge_png_header(width: int = 60_000, height: int = 60_000) -> bytes:
    """A PNG that says it has billions of pixels, in a hundred bytes."""
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


def pdf(pages: int = 3, password: str | None = None) -> bytes:
    writer, made = PdfWriter(), io.BytesIO()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(made)
    return made.getvalue()


def endless_pdf(levels: int = 9, children: int = 12) -> bytes:
    """A page tree in which each level names the next one many times: a few bytes, and billions of pages."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    for level in range(levels):
        kids = b" ".join(b"%d 0 R" % (level + 3) for _ in range(children))
        objects.append(b"<< /Type /Pages /Count 1 /Kids [%s] >>" % kids)
    objects.append(b"<< /Type /Page /MediaBox [0 0 9 9] >>")
    made, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(made))
    return made + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def mp4(
    seconds: float = 5.0, width: int = 640, height: int = 360, *, size: int = 0, version: int = 0
) -> bytes:
    """Headers as cameras write them, and `size` bytes of pictures before `moov`."""
    scale = 1_000
    duration = int(seconds * scale)
    times = (
        struct.pack(">QQIQ", 0, 0, scale, duration)
        if version
        else struct.pack(">IIII", 0, 0, scale, duration)
    )
    movie = box(b"mvhd", bytes([version, 0, 0, 0]) + times + bytes(80))
    track = (
        struct.pack(">QQIIQ", 0, 0, 1, 0, duration)
        if version
        else struct.pack(">IIIII", 0, 0, 1, 0, duration)
    )
    picture = struct.pack(">II", width << 16, height << 16)
    header = box(b"tkhd", bytes([version, 0, 0, 7]) + track + bytes(52) + picture)
    return (
        box(b"ftyp", b"isom\0\0\2\0isomiso2mp41")
        + box(b"mdat", bytes(size))
        + box(b"moov", movie + box(b"trak", header))
    )


def office(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in ("[Content_Types].xml", *names):
            archive.writestr(name, "<xml/>")
    return made.getvalue()


def old_office(stream: str) -> bytes:
    return bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1_016) + stream.encode("utf-16-le") + bytes(500)
