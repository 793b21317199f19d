"""What is refused when a post is saved, and warnings about the API version."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from momentum.errors import ConfigError
from momentum.model import Article, Content, Media, MediaKind, MediaUse
from momentum.platforms.linkedin import LinkedIn, LinkedInSettings
from tests.momentum.platforms.fixtures import media_file, post_of

IMAGE = media_file(MediaKind.IMAGE, b"x", media_id="image").media
VIDEO = replace(media_file(MediaKind.VIDEO, b"x", media_id="video").media, width=1920, height=1080)
ARTICLE = Article("https://x.org", "A title")
LINKEDIN = LinkedIn(LinkedInSettings())


@pytest.mark.parametrize(
    ("content", "media", "codes"),
    [
        (Content("Hello"), [], []),
        (Content(" \n"), [], ["text_missing"]),
        (Content("", media=(MediaUse("image"),)), [IMAGE], []),
        (Content("", article=ARTICLE), [], []),
        (Content("", article=replace(ARTICLE, thumbnail="image")), [IMAGE], []),
        (Content("x", media=(MediaUse("image"),), article=ARTICLE), [IMAGE], ["article_with_media"]),
        (Content("x", media=(MediaUse("image"), MediaUse("video"))), [IMAGE, VIDEO], ["media_mixed"]),
        (Content("x", media=(MediaUse("video"),)), [replace(VIDEO, width=2600)], ["video_aspect"]),
        (Content("x", media=(MediaUse("video"),)), [replace(VIDEO, width=400)], ["video_aspect"]),
        (Content("x", media=(MediaUse("image", alt_text="x" * 4087),)), [IMAGE], ["too_long"]),
        (Content("x", article=replace(ARTICLE, title="x" * 401)), [], ["too_long"]),
    ],
)
def test_problems_of_a_post(content: Content, media: list[Media], codes: list[str]) -> None:
    post = replace(post_of(), content=content)
    assert [problem.code for problem in LINKEDIN.check(post, media)] == codes


@pytest.mark.parametrize(
    ("version", "day", "notice"),
    [
        ("202609", "2027-07-16", None),
        ("202609", "2027-07-17", "202609 ends on 2027-09-15"),
        ("202609", "2027-09-15", "202609 ended on 2027-09-15"),
        ("202511", "2026-11-17", "202511 ended on 2026-11-16"),
        ("202603", "2026-12-01", None),
        ("202603", "2027-02-01", "202603 ends about 2027-03-15"),
    ],
)
def test_operator_is_warned_60_days_before_a_version_ends(version: str, day: str, notice: str | None) -> None:
    linkedin = LinkedIn(LinkedInSettings(version=version))
    notices = linkedin.notices(datetime.fromisoformat(day).replace(tzinfo=UTC))
    assert len(notices) == (notice is not None)
    assert all(str(notice) in text for text in notices)


@pytest.mark.parametrize("version", ["", "2026", "202613", "20260901", "latest"])
def test_version_must_be_a_month(version: str) -> None:
    with pytest.raises(ConfigError, match="version"):
        LinkedInSettings(version=version)


def test_secret_is_not_shown() -> None:
    assert "hidden" not in repr(LinkedInSettings(client_secret="hidden"))
