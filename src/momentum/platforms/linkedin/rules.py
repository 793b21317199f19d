"""What LinkedIn accepts, so that a post is refused when it is saved and not when it is due."""

from __future__ import annotations

from collections.abc import Sequence

from momentum.errors import Problem
from momentum.model import Content, Media, MediaKind
from momentum.platform import MediaRule, Rules

MB = 1024 * 1024
MAX_ALT_TEXT = 4086
MAX_TITLE = 400
MAX_DESCRIPTION = 4086
MAX_ASPECT = 2.4  # of a video, wide or high

RULES = Rules(
    max_text=3000,
    fold_after=210,
    media={
        MediaKind.IMAGE: MediaRule(
            types=("image/jpeg", "image/png", "image/gif"),
            max_bytes=5 * MB,
            max_count=20,
            max_pixels=36_152_319,  # LinkedIn: less than 36,152,320
        ),
        MediaKind.DOCUMENT: MediaRule(
            types=(
                "application/pdf",
                "application/msword",
                "application/vnd.ms-powerpoint",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            max_bytes=100 * MB,
            max_pages=300,
        ),
        MediaKind.VIDEO: MediaRule(
            types=("video/mp4",),
            min_bytes=75 * 1024,
            max_bytes=500 * MB,
            min_seconds=3,
            max_seconds=30 * 60,
        ),
    },
    articles=True,
    visibilities=("PUBLIC", "CONNECTIONS", "LOGGED_IN"),
    requests_per_account_per_day=150,
    requests_per_app_per_day=100_000,
)


def problems(content: Content, media: Sequence[Media]) -> list[Problem]:
    """What is wrong beyond the numbers in `RULES`."""
    found = []
    if not content.text.strip() and not content.media and content.article is None:
        found.append(Problem("text", "write a text, or add a file or an article", "text_missing"))
    if content.article is not None and content.media:
        message = "a post has either files or an article: remove one of them"
        found.append(Problem("article", message, "article_with_media"))
    kinds = {each.kind for each in media if each.id in {use.media_id for use in content.media}}
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        found.append(Problem("media", f"LinkedIn does not mix {names} in one post", "media_mixed"))
    found += [problem for index, each in enumerate(media) for problem in _aspect(index, each)]
    found += _lengths(content)
    return found


def _aspect(index: int, media: Media) -> list[Problem]:
    if media.kind is not MediaKind.VIDEO or not media.width or not media.height:
        return []
    if 1 / MAX_ASPECT <= media.width / media.height <= MAX_ASPECT:
        return []
    message = f"{media.width} x {media.height} is too narrow; the sides may differ by a factor of 2.4"
    return [Problem(f"media[{index}]", message, "video_aspect")]


def _lengths(content: Content) -> list[Problem]:
    fields = [
        (f"media[{index}].alt_text", use.alt_text, MAX_ALT_TEXT) for index, use in enumerate(content.media)
    ]
    fields += [(f"media[{index}].title", use.title, MAX_TITLE) for index, use in enumerate(content.media)]
    if content.article is not None:
        fields.append(("article.title", content.article.title, MAX_TITLE))
        fields.append(("article.description", content.article.description, MAX_DESCRIPTION))
    return [
        Problem(field, f"{len(value)} characters; at most {maximum} are possible", "too_long")
        for field, value, maximum in fields
        if len(value) > maximum
    ]
