"""What a file is, by its content: kind, type, pixels, duration and pages. Names and declared types are not
trusted. Images are decoded, because a file can be cut off anywhere; one of gigantic size is refused by its
header. `bounded.py` runs this in a process with limits."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from momentum.errors import InvalidPost, Problem
from momentum.media.mp4 import Mp4Damaged, read_mp4
from momentum.model import MediaKind

IMAGES = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
PDF, MP4, QUICKTIME = "application/pdf", "video/mp4", "video/quicktime"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
DOC, PPT = "application/msword", "application/vnd.ms-powerpoint"
OLE_SIGNATURE = bytes.fromhex("d0cf11e0a1b11ae1")
# Names of the streams in a file of Word or PowerPoint up to 2003, as its directory writes them.
OLE_STREAMS = {"WordDocument".encode("utf-16-le"): DOC, "PowerPoint Document".encode("utf-16-le"): PPT}
HEAD = 4_096  # bytes that tell the type
PDF_MARK, PDF_HEAD = b"%PDF-", 1_024  # it may come after other bytes
CHUNK = 1 << 20
MAX_ZIP_ENTRIES = 20_000
ACCEPTED = "JPEG, PNG, GIF, WebP, PDF, DOC, DOCX, PPT, PPTX or MP4"
MAX_PIXELS = 50_000_000  # of one picture: more than any platform takes
MAX_ALL_PIXELS = 1_000_000_000  # of all pictures of an animation


class MediaRefused(InvalidPost, code="media_invalid"):
    """The file is not of a kind that can be published, or it is damaged."""

    def __init__(self, message: str, code: str = "media_invalid") -> None:
        super().__init__([Problem("media", message, code)])


@dataclass(frozen=True, slots=True)
class MediaFacts:
    kind: MediaKind
    type: str
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    pages: int | None = None


def inspect_file(path: Path, declared_type: str = "") -> MediaFacts:
    """Blocks, and decodes without limits: see `bounded.py`. `declared_type` is only for the message."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")) or (
        head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    ):
        return _image(path)
    if head[4:8] == b"ftyp":
        return _video(path, head)
    if PDF_MARK in head[:PDF_HEAD]:
        return _pdf(path)
    if head.startswith(b"PK\x03\x04"):
        return _office(path)
    if head.startswith(OLE_SIGNATURE):
        return _old_office(path)
    declared = f" (it was sent as {declared_type})" if declared_type else ""
    raise MediaRefused(f"is not a file that can be published{declared}: use {ACCEPTED}", "media_type_unknown")


def is_pdf(path: Path) -> bool:
    """Whether the file may be read as a PDF."""
    with path.open("rb") as file:
        return PDF_MARK in file.read(PDF_HEAD)


def _image(path: Path) -> MediaFacts:
    from PIL import Image, ImageSequence

    Image.MAX_IMAGE_PIXELS = None  # checked here, before anything is decoded
    try:
        with Image.open(path, formats=tuple(IMAGES)) as image:
            (width, height), found = image.size, IMAGES[image.format or ""]
            if width * height > MAX_PIXELS or width * height * getattr(image, "n_frames", 1) > MAX_ALL_PIXELS:
                raise MediaRefused("has far too many pixels: make the image smaller", "media_too_many_pixels")
            for frame in ImageSequence.Iterator(image):
                frame.load()
        with Image.open(path, formats=tuple(IMAGES)) as image:
            image.verify()  # checksums, which decoding does not always look at
    except MediaRefused:
        raise
    except MemoryError:
        raise MediaRefused(
            "has far too many pixels: make the image smaller", "media_too_many_pixels"
        ) from None
    except Exception:  # decoders have many ways to fail on a damaged file
        raise MediaRefused("is a damaged image: export it again") from None
    return MediaFacts(MediaKind.IMAGE, found, width, height)


def _video(path: Path, head: bytes) -> MediaFacts:
    try:
        with path.open("rb") as file:
            facts = read_mp4(file, path.stat().st_size)
    except Mp4Damaged as problem:
        raise MediaRefused(f"is a damaged video: {problem}; export it again") from None
    found = QUICKTIME if head[8:12] == b"qt  " else MP4
    return MediaFacts(MediaKind.VIDEO, found, facts.width, facts.height, facts.seconds)


def _pdf(path: Path) -> MediaFacts:
    from pypdf import PdfReader

    try:
        with PdfReader(path) as reader:
            if reader.is_encrypted:
                raise MediaRefused("is a PDF with a password: save it without one", "media_encrypted")
            pages = len(reader.pages)
    except (MediaRefused, MemoryError):
        raise
    except Exception:  # the parser has many ways to fail on a damaged file
        raise MediaRefused("is a damaged PDF: export it again") from None
    return MediaFacts(MediaKind.DOCUMENT, PDF, pages=pages)


def _office(path: Path) -> MediaFacts:
    """A zip archive: its file names tell what it is. Nothing is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        raise MediaRefused("is a damaged document: export it again") from None
    if len(names) > MAX_ZIP_ENTRIES or "[Content_Types].xml" not in names:
        raise MediaRefused(f"is an archive, not a document: use {ACCEPTED}", "media_type_unknown")
    if "word/document.xml" in names:
        return MediaFacts(MediaKind.DOCUMENT, DOCX)
    if "ppt/presentation.xml" in names:
        slides = sum(name.startswith("ppt/slides/slide") and name.endswith(".xml") for name in names)
        return MediaFacts(MediaKind.DOCUMENT, PPTX, pages=slides)
    raise MediaRefused(f"is an office document of another kind: use {ACCEPTED}", "media_type_unknown")


def _old_office(path: Path) -> MediaFacts:
    overlap = max(map(len, OLE_STREAMS))
    with path.open("rb") as file:
        before = b""
        while chunk := file.read(CHUNK):
            for stream, found in OLE_STREAMS.items():
                if stream in before + chunk:
                    return MediaFacts(MediaKind.DOCUMENT, found)
            before = chunk[-overlap:]
    raise MediaRefused(f"is an office document of another kind: use {ACCEPTED}", "media_type_unknown")
