"""Files are recognised by their content, and damaged or dangerous ones are refused."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from pathlib import Path

import pytest

from momentum.media import bounded
from momentum.media.bounded import Inspector
from momentum.media.inspection import DOC, DOCX, PPT, PPTX, MediaFacts, MediaRefused, inspect_file
from momentum.model import MediaKind
from tests.momentum.media import samples


def facts_of(content: bytes, folder: Path) -> MediaFacts:
    file = folder / "file.bin"  # the name says nothing
    file.write_bytes(content)
    return inspect_file(file)


@pytest.mark.parametrize(
    ("kind", "type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")],
)
def test_image_has_type_and_size(kind: str, type: str, tmp_path: Path) -> None:
    assert facts_of(samples.image(kind, 40, 30), tmp_path) == MediaFacts(MediaKind.IMAGE, type, 40, 30)


def test_pages_of_pdf_are_counted(tmp_path: Path) -> None:
    assert facts_of(samples.pdf(7), tmp_path) == MediaFacts(MediaKind.DOCUMENT, "application/pdf", pages=7)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("size", [0, 50_000])
def test_video_has_duration_and_size(version: int, size: int, tmp_path: Path) -> None:
    found = facts_of(samples.mp4(12.5, 1280, 720, size=size, version=version), tmp_path)
    assert found == MediaFacts(MediaKind.VIDEO, "video/mp4", 1280, 720, 12.5)


@pytest.mark.parametrize(
    ("content", "type", "pages"),
    [
        (samples.office("word/document.xml"), DOCX, None),
        (
            samples.office("ppt/presentation.xml", "ppt/slides/slide1.xml", "ppt/slides/slide2.xml"),
            PPTX,
            2,
        ),
        (samples.old_office("WordDocument"), DOC, None),
        (samples.old_office("PowerPoint Document"), PPT, None),
    ],
    ids=["docx", "pptx", "doc", "ppt"],
)
def test_office_document_is_recognised(content: bytes, type: str, pages: int | None, tmp_path: Path) -> None:
    assert facts_of(content, tmp_path) == MediaFacts(MediaKind.DOCUMENT, type, pages=pages)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"hello world", "media_type_unknown", "is not a file that can be published"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "media_type_unknown", "is not a file"),
        (samples.office("xl/workbook.xml"), "media_type_unknown", "of another kind"),
        (samples.old_office("Workbook"), "media_type_unknown", "of another kind"),
        (samples.image()[:60], "media_invalid", "is a damaged image"),
        (samples.pdf()[:200], "media_invalid", "is a damaged PDF"),
        (samples.pdf(password="secret"), "media_encrypted", "with a password"),
        (samples.mp4(size=9_000)[:5_000], "media_invalid", "ends outside of the file"),
        (samples.mp4()[:40], "media_invalid", "no table of contents"),
        (samples.huge_png_header(), "media_too_many_pixels", "far too many pixels"),
        (samples.huge_png_header(10_000, 12_000), "media_too_many_pixels", "far too many pixels"),
    ],
)
def test_file_is_refused_with_the_reason(content: bytes, code: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match=message) as refused:
        facts_of(content, tmp_path)
    assert [(one.field, one.code) for one in refused.value.problems] == [("media", code)]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_image_that_is_cut_off_is_refused(kind: str, kept: float, tmp_path: Path) -> None:
    content = samples.photo(kind)
    assert facts_of(content, tmp_path).width == 200
    with pytest.raises(MediaRefused, match="damaged image"):
        facts_of(content[: int(len(content) * kept)], tmp_path)


def test_later_picture_of_an_animation_is_decoded(tmp_path: Path) -> None:
    content = samples.photo("GIF", frames=3)
    facts_of(content, tmp_path)
    with pytest.raises(MediaRefused, match="damaged image"):
        facts_of(content[: int(len(content) * 0.8)], tmp_path)


async def test_file_that_keeps_its_parser_busy_is_refused(tmp_path: Path) -> None:
    """A pipe into which nothing is written: reading it never ends."""
    endless = tmp_path / "endless"
    os.mkfifo(endless)
    with pytest.raises(MediaRefused, match="too much time or memory") as refused:
        await Inspector(timeout=2.0).inspect(endless)
    assert [(one.field, one.code) for one in refused.value.problems] == [("media", "media_too_complex")]


@pytest.mark.parametrize(("limit", "value"), [("MAX_MEMORY", 1 << 20), ("MAX_CPU", 0)])
async def test_limits_hold_in_the_process_of_the_file(
    limit: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import momentum.media.bounded as m; m.{limit} = {value}; m.main()"
    monkeypatch.setattr(bounded, "PROGRAM", program)
    file = tmp_path / "photo.png"
    file.write_bytes(samples.photo("PNG", 2_000, 2_000))
    with pytest.raises(MediaRefused) as refused:
        await Inspector().inspect(file)
    assert refused.value.problems[0].code in ("media_too_complex", "media_too_many_pixels")


async def test_pdf_with_billions_of_pages_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import momentum.media.bounded as m; m.MAX_CPU, m.MAX_CPU_OF_PDF = 600, 1; m.main()"
    monkeypatch.setattr(bounded, "PROGRAM", program)
    file = tmp_path / "file.pdf"
    file.write_bytes(b"\n" * 900 + samples.endless_pdf())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(MediaRefused) as refused:
        await Inspector().inspect(file)
    assert refused.value.problems[0].code == "media_too_complex"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 2.5


async def test_files_of_one_tenant_do_not_stop_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each child runs until its file is gone."""
    waiting = "while pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"
    facts = {"kind": "image", "type": "image/png"}
    monkeypatch.setattr(
        bounded, "PROGRAM", f"import pathlib, sys, time\n{waiting}\nprint({json.dumps(json.dumps(facts))})"
    )
    inspector, busy = Inspector(), tmp_path / "busy"
    busy.touch()
    stuck = [asyncio.create_task(inspector.inspect(busy, tenant="one")) for _ in range(4)]
    async with asyncio.timeout(60):
        for tenant in ("two", "three"):
            assert (await inspector.inspect(tmp_path / "gone", tenant=tenant)).type == "image/png"
        assert not any(one.done() for one in stuck)
        busy.unlink()
        await asyncio.gather(*stuck)


async def test_facts_come_from_the_process_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(samples.pdf(2))
    assert await Inspector().inspect(file) == MediaFacts(MediaKind.DOCUMENT, "application/pdf", pages=2)


def test_video_whose_box_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    """A size of 1 with a long size of 0 would make a naive reader loop."""
    endless = samples.box(b"ftyp", b"isom\0\0\0\0") + b"\0\0\0\1free" + bytes(8)
    with pytest.raises(MediaRefused, match="damaged video"):
        facts_of(endless, tmp_path)
